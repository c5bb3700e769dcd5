"""Which format, what is refused, and that nothing is half written."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from gosprl.errors import GosprlError, InputError
from gosprl.exchange import export, exporting
from gosprl.exchange.appearing import appearing
from gosprl.exchange.sources import DELTA

ENDINGS = ("npz", "parquet", "csv", "dot", "graphml")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.parquet.gz", "parquet"])
def test_unknown_endings_list_the_known_ones(river_run, tmp_path, name):
    with pytest.raises(InputError, match=re.escape(".npz .parquet .csv .dot .graphml .prism .nm .pm .drn .umb")):
        export(river_run, tmp_path / name)


def test_unknown_formats_list_the_known_ones(river_run, tmp_path):
    with pytest.raises(InputError, match="known are csv, dot, drn, graphml, minari, npz, parquet, prism, umb"):
        export(river_run, tmp_path / "a.csv", to="xlsx")


def test_the_format_can_be_named(river_run, tmp_path):
    export(river_run, tmp_path / "a.dat", to="npz")
    assert np.load(tmp_path / "a.dat")["counts"].shape == (6, 2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_existing_files_stay(river_run, tmp_path, ending):
    file = tmp_path / f"a.{ending}"
    file.write_text("mine")
    with pytest.raises(InputError, match="exists"):
        export(river_run, file)
    assert file.read_text() == "mine"
    export(river_run, file, force=True)
    assert file.read_bytes() != b"mine"
    assert os.listdir(tmp_path) == [file.name]


def test_directories_are_never_replaced(river_run, tmp_path):
    (tmp_path / "a-v0").mkdir()
    for force in (False, True):
        with pytest.raises(InputError, match="existing directory"):
            export(river_run, tmp_path / "a-v0", to="minari", force=force)


def test_links_are_replaced_not_followed(river_run, tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a.csv").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="exists"):
        export(river_run, tmp_path / "a.csv")
    export(river_run, tmp_path / "a.csv", force=True)
    assert (tmp_path / "mine").read_text() == "mine"


def test_no_directory(river_run, tmp_path):
    with pytest.raises(InputError, match="existing directory"):
        export(river_run, tmp_path / "none" / "a.csv")


def test_the_namespace_of_a_data_set_is_made(river_run, damaged, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(InputError):
        export(damaged, out / "mine" / "river-v0", to="minari")
    (out / "file").write_text("mine")
    with pytest.raises(GosprlError, match=r"file: .* cannot be made"):
        export(river_run, out / "file" / "river-v0", to="minari")
    assert os.listdir(out) == ["file"]
    export(river_run, out / "sets" / "mine" / "river-v0", to="minari")
    assert os.listdir(out / "sets" / "mine") == ["river-v0"]


@pytest.mark.parametrize("ending", [*ENDINGS, "minari"])
def test_damaged_runs_are_refused(damaged, tmp_path, ending):
    (tmp_path / "out").mkdir()
    to, dot = (ending, "-") if ending == "minari" else (None, ".")
    with pytest.raises(InputError, match="damaged"):
        export(damaged, tmp_path / "out" / f"a{dot}{ending}", to)
    assert not os.listdir(tmp_path / "out")


def test_other_sources_are_refused(tmp_path):
    with pytest.raises(InputError, match="expected the directory of a run, with a"):
        export(tmp_path, tmp_path / "a.csv")
    with pytest.raises(InputError, match="got ndarray"):
        export(np.zeros(3), tmp_path / "a.csv")


def test_wrong_options_are_named(river_run, tmp_path):
    with pytest.raises(InputError, match="no such option"):
        export(river_run, tmp_path / "a.dot", table="model")
    with pytest.raises(InputError, match="known are model, transitions"):
        export(river_run, tmp_path / "a.csv", table="counts")
    with pytest.raises(InputError, match="delta"):
        export(river_run, tmp_path / "a.csv", table="model", delta=2)
    assert not os.listdir(tmp_path)


def test_a_format_that_is_not_there(river_run, tmp_path, monkeypatch):
    monkeypatch.setitem(exporting.FORMATS, "none", exporting.Format("gosprl.exchange.none:write", (".none",), ""))
    with pytest.raises(InputError, match="not available"):
        export(river_run, tmp_path / "a.none")


def test_a_package_that_is_not_there(river_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    monkeypatch.setitem(sys.modules, "minari", None)
    for file, to in (("a.graphml", None), ("a-v0", "minari")):
        with pytest.raises(InputError, match=re.escape("pip install 'gosprl[exchange]'")):
            export(river_run, tmp_path / file, to)
    assert not os.listdir(tmp_path)


def test_models_get_the_level_of_the_run_and_the_options(river_run, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        exporting, "_writer", lambda name: lambda mdp, file: told.append(mdp) or file.write_text("done")
    )
    export(river_run, tmp_path / "a.drn", labels={"goal": [5]})
    assert (tmp_path / "a.drn").read_text() == "done"
    assert told[0].labels["goal"].tolist() == [5]
    assert f"level: delta = {DELTA}" in told[0].notes
    export(river_run, tmp_path / "b.drn", delta=0.03)
    assert "level: delta = 0.03" in told[1].notes
    with pytest.raises(InputError, match="no such option"):
        export(river_run, tmp_path / "c.drn", label={})


LIMITED = """
import os, resource, sys
from gosprl.exchange import export
import pyarrow.csv, pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
run, folder, *endings = sys.argv[1:]
for ending in endings:
    to, name = ("minari", "a-v0") if ending == "minari" else (None, "a." + ending)
    try:
        export(run, os.path.join(folder, name), to)
    except Exception as error:
        print(ending, len(os.listdir(folder)), type(error).__name__, error)
"""


def test_no_space_leaves_nothing(river_run, tmp_path):
    """One process for all formats, since each takes a second to begin."""
    endings = [*ENDINGS, "minari", "drn", "umb"]
    command = [sys.executable, "-c", LIMITED, river_run, tmp_path, *endings]
    done = subprocess.run(command, capture_output=True, text=True)  # HDF5 says more in stderr
    for ending, line in zip(endings, done.stdout.splitlines(), strict=True):
        assert line.startswith(f"{ending} 0 GosprlError file: ")
        assert line.endswith("nothing was left behind")
    assert not os.listdir(tmp_path)


def test_interrupts_leave_nothing(tmp_path):
    def interrupted():
        with appearing(tmp_path / "a.csv", False) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not os.listdir(tmp_path)


def test_one_that_appears_meanwhile_stays(tmp_path):
    def overtaken():
        with appearing(tmp_path / "a.csv", False) as temporary:
            temporary.write_text("ours")
            (tmp_path / "a.csv").write_text("theirs")

    with pytest.raises(InputError, match="exists"):
        overtaken()
    assert os.listdir(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "theirs"


def test_what_is_not_written_is_an_error(tmp_path):
    with pytest.raises(GosprlError, match="cannot be written"), appearing(tmp_path / "a.csv", False):
        pass
