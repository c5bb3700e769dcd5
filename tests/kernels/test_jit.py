"""The kernels' cache on disk: correct after edits of any kernel file, silent when warm, and never an error.

Each test runs a package of a few lines, with the decorator of this project copied into it, in processes of its own. The
first test starts them cold; of the others, all but those with other settings of numba have numba in memory already.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import warmed
from notices import COMPILING

import gosprl._kernels._jit

FILES = {
    "__init__.py": "",
    "_kernels/__init__.py": "",
    "_kernels/called.py": "from tiny._kernels._jit import jit\n\n@jit\ndef called(x):\n    return x + 1\n",
    "_kernels/caller.py": """
from tiny._kernels._jit import jit
from tiny._kernels.called import called
from tiny.collecting import rules

rule = jit(rules.rule)

@jit(nogil=True)
def caller(x):
    return 10 * called(x) + rule(x)
""",
    "_kernels/unstamped.py": """
import numba

from tiny._kernels.called import called

@numba.njit(cache=True)
def unstamped(x):
    return 10 * called(x)
""",
    "collecting/__init__.py": "",
    "collecting/rules.py": "def rule(x):\n    return x\n",
}
SHOW = """
from tiny._kernels.caller import caller
print(caller(3), sum(caller.stats.cache_hits.values()), sum(caller.stats.cache_misses.values()))
"""


class Package:
    """The package `tiny` in a directory."""

    def __init__(self, root):
        self.root = root
        for name, text in FILES.items():
            file = root / "tiny" / name
            file.parent.mkdir(exist_ok=True, parents=True)
            file.write_text(text)
        shutil.copy(gosprl._kernels._jit.__file__, root / "tiny" / "_kernels")

    def edit(self, name, old, new):
        file = self.root / "tiny" / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def run(self, code, cold=False, **environment):
        """What Python code prints, and its lines on stderr."""
        hidden = ("NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR", "PYTHONWARNINGS")
        inherited = {name: value for name, value in os.environ.items() if name not in hidden}
        environment = inherited | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"} | environment
        start = subprocess.run
        if not cold:
            start = warmed.run
            code = f"import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, {str(self.root)!r})\n{code}"
        done = start([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr.splitlines()


@pytest.fixture
def package(tmp_path):
    return Package(tmp_path)


def test_unchanged_kernels_are_loaded_and_an_edit_of_any_kernel_file_recompiles_its_callers(package):
    show = SHOW + "from tiny._kernels.unstamped import unstamped\nprint(unstamped(3))"
    printed, errors = package.run(show, cold=True)
    assert printed == ["43", "0", "1", "40"]
    assert len(errors) == 1  # for several kernels
    assert errors[0].startswith(f"{COMPILING}, once per installation")
    assert package.run(show, cold=True) == (["43", "1", "0", "40"], [])
    package.edit("_kernels/called.py", "x + 1", "x + 2")
    printed, errors = package.run(show, cold=True)
    assert printed == ["53", "0", "1", "40"]  # the last is what numba's own stamp makes of the edit: the old sum
    assert len(errors) == 1
    package.edit("collecting/rules.py", "return x", "return x + 6")
    assert package.run(show, cold=True)[0] == ["59", "0", "1", "40"]
    assert package.run(show, cold=True) == (["59", "1", "0", "40"], [])


def test_damaged_files_are_replaced(package):
    package.run(SHOW)
    for kind in ("nbi", "nbc"):
        for file in package.root.rglob(f"*.{kind}"):
            file.write_bytes(file.read_bytes()[:20])
        printed, errors = package.run(SHOW)
        assert printed == ["43", "0", "1"]
        assert len(errors) == 1
        assert package.run(SHOW) == (["43", "1", "0"], [])


BROKEN = {
    "unwritable": """
import numba.core.caching
def refuse(self):
    raise PermissionError("read-only")
numba.core.caching._CacheLocator.ensure_cache_path = refuse
""",
    "other internals": """
import numba.core.caching
class Other(numba.core.caching.FunctionCache):
    def __init__(self, py_func):
        super().__init__(py_func)
        self._file = self.__dict__.pop("_cache_file")
import numba.core.dispatcher
numba.core.dispatcher.FunctionCache = Other
""",
    "another stamp": """
import numba.core.caching
begin = numba.core.caching.IndexDataCacheFile.__init__
def other(self, cache_path, filename_base, source_stamp):
    begin(self, cache_path, filename_base, ("stamp", source_stamp))
numba.core.caching.IndexDataCacheFile.__init__ = other
""",
    "full disk": """
import numba.core.caching
def refuse(self, key, data):
    raise OSError("no space left")
numba.core.caching.IndexDataCacheFile.save = refuse
""",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_cache_that_cannot_be_used_is_one_warning(package, broken):
    for _ in range(2):
        printed, errors = package.run(BROKEN[broken] + SHOW)
        assert printed == ["43", "0", "1"]
        assert len([line for line in errors if "RuntimeWarning: gosprl: every process compiles" in line]) == 1
        notices = [line for line in errors if line.startswith(COMPILING)]
        assert len(notices) == 1
        assert ("once" in notices[0]) == (broken == "full disk")  # which shows only when something is saved


def test_without_sources_to_digest_nothing_is_kept(package):
    """As in a zip archive: the kernels can be imported, their files cannot be listed."""
    hide = "import pathlib\npathlib.Path.glob = lambda self, pattern: iter(())\n"
    printed, errors = package.run(hide + SHOW)
    assert printed == ["43", "0", "1"]
    assert "no sources" in "".join(errors)


def test_disabled_jit_is_the_plain_function(package):
    code = "from tiny._kernels.caller import *\nprint(caller(3), rule is rules.rule, type(caller).__name__)"
    assert package.run(code, cold=True, NUMBA_DISABLE_JIT="1") == (["43", "True", "function"], [])


def test_the_digest_covers_every_kernel_of_this_project():
    """Kernels are defined in the files digested: the package, and the rules that `walk` compiles."""
    package = Path(gosprl._kernels.__file__).parent
    files = {
        Path(kernel.py_func.__code__.co_filename)
        for kernel in vars(gosprl._kernels).values()
        if hasattr(kernel, "py_func")
    }
    assert len(files) > 5
    assert files <= {*package.glob("*.py"), package.parent / "collecting" / "rules.py"}
