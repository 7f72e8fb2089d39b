"""`chokaq worker` that obeys file permissions, as a user other than root does. usage: plain_user.py worker --config …"""

import ctypes
import os
import sys

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1

if __name__ == "__main__":
    # Root gives the capability up, which counts from the next program on; for anybody else there is nothing to give up.
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-m", "chokaq", *sys.argv[1:]])
