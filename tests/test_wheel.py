"""The wheel, unpacked elsewhere and without extras, works; uncompiled, so that it takes seconds."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMOKE = """
import sys

class Refused:  # as if the extras were not installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("matplotlib", "pytest", "hypothesis", "stormpy", "xdist"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refused())
import gosprl
assert gosprl.__file__.startswith(sys.argv[1]), gosprl.__file__
result = gosprl.collect(gosprl.envs.make("toy3"), need=3, seed=0)
assert result.met and result.counts.sum() == result.steps
import gymnasium
assert gosprl.collect(gymnasium.make("FrozenLake-v1"), need=1, seed=0, max_steps=30).steps == 30
assert gosprl.plan(gosprl.envs.make("riverswim6"), goals=[5]).gap < 1e-3
sys.argv[1:] = ["collect", "toy3", "--need", "1", "--json"]
from gosprl.cli import main
main()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run([str(part) for part in command], check=True)
    (file,) = folder.glob("gosprl-*-py3-none-any.whl")
    return file


def test_the_wheel_has_what_it_needs_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "gosprl/py.typed" in names
    assert "gosprl/__main__.py" in names
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "gosprl").rglob("*.py")}
    assert sources <= set(names)
    assert {name.partition("/")[0] for name in names if "dist-info" not in name} == {"gosprl"}


def test_it_runs_elsewhere_without_extras(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "PATH": ""}
    command = [sys.executable, "-c", SMOKE, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"met": true' in done.stdout


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "gosprl", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip()
