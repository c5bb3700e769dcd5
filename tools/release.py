"""What is published, made and checked: `make release`.

1. version, CITATION.cff and CHANGELOG.md agree;
2. the source distribution and the wheel are built into dist/, and their metadata is checked (`twine check --strict`);
3. each is installed into an environment of its own, elsewhere, and the smoke test of tests/test_wheel.py runs there;
4. a newcomer's path with the wheel is walked (benchmarks/newcomer.py).

Nothing is uploaded. `--final` refuses a version of development and an undated section of the changelog.
"""

import argparse
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def problems(version, citation, changelog, *, final=False):
    """What keeps a version from being published, one line each."""
    found = []
    stated = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    if stated is None or stated[1] != version:
        found.append(f"CITATION.cff has version {stated and stated[1]}, gosprl {version}")
    number = version.partition(".dev")[0]
    section = re.search(rf"^## {re.escape(number)} \((.*?)\)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None:
        return [*found, f"CHANGELOG.md has no section '## {number} (date)'"]
    if not re.search(r"^- ", section[2], re.MULTILINE):
        found.append(f"CHANGELOG.md says nothing about {number}")
    dated = re.fullmatch(r"\d{4}-\d\d-\d\d", section[1])
    if final and ".dev" in version:
        found.append(f"{version} is a version of development")
    if (final or ".dev" not in version) and not dated:
        found.append(f"CHANGELOG.md: {number} has no date but ({section[1]})")
    return found


def run(*command, **options):
    """Run a command that must succeed."""
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def smoke(file, code):
    """Install a distribution into an environment of its own, and run the smoke test there."""
    with tempfile.TemporaryDirectory() as place:
        venv.create(Path(place) / "env", with_pip=True)
        python = Path(place) / "env" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file, cwd=place)
        print(f"$ smoke test of {file.name}", flush=True)
        subprocess.run([str(python), "-c", code, place], check=True, cwd=place, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--final", action="store_true", help="a version that is to be published now")
    final = parser.parse_args().final
    version = re.search(r'__version__ = "(.*?)"', (ROOT / "gosprl/__init__.py").read_text())[1]
    found = problems(version, (ROOT / "CITATION.cff").read_text(), (ROOT / "CHANGELOG.md").read_text(), final=final)
    if found:
        sys.exit("\n".join(found))
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    files = sorted(DIST.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    code = runpy.run_path(str(ROOT / "tests/test_wheel.py"))["SMOKE"]
    for file in files:
        smoke(file, code)
    run(sys.executable, ROOT / "benchmarks/newcomer.py", "--wheel", next(DIST.glob("*.whl")))
    print(f"{version} is ready: {', '.join(file.name for file in files)}")


if __name__ == "__main__":
    main()
