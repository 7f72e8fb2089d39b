"""`chokaq worker` without the command line. usage: real_worker.py CONFIG [undescribed]

`undescribed`: the application's code is first seen by a child.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from chokaq.config import load_settings, load_worker_settings
from chokaq.observe import configure_logging
from chokaq.supervisor import run

if __name__ == "__main__":
    configure_logging("info", "json", repeats=None)
    load = load_settings if "undescribed" in sys.argv else load_worker_settings
    sys.exit(run(load(Path(sys.argv[1]))))
