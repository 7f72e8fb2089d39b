"""`chokaq worker` without the command line. usage: real_worker.py CONFIG"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from chokaq.config import load_settings
from chokaq.observe import configure_logging
from chokaq.supervisor import run

if __name__ == "__main__":
    configure_logging("info", "json")
    sys.exit(run(load_settings(Path(sys.argv[1]))))
