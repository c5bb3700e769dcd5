"""Ray on this machine only, with nodes that can import what the tests use; set before Ray is imported."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ.setdefault("RAY_AUTH_TOKEN", "of-the-tests")
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
