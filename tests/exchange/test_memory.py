"""Memory does not grow with the log: six times the rows, and about the same peak of what Python and Arrow hold."""

import tracemalloc

import pyarrow as pa
import pytest

import gosprl
import gosprl.runs
from gosprl.exchange import convert, converting, csv_files, export, npz, tables
from gosprl.exchange.sources import Source

ROWS, SIZES = 2048, (40_000, 240_000)
MORE = 4e6  # bytes; the columns of the rows more have 7.6e6, batches of the log may differ by 1e6


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A short and a long run."""
    folder = tmp_path_factory.mktemp("runs")
    for steps in SIZES:
        out = gosprl.runs.Out(folder / str(steps), sync_steps=ROWS)
        gosprl.collect(gosprl.envs.make("riverswim6"), 10**9, seed=0, strategy="random", max_steps=steps, out=out)
    return [folder / str(steps) for steps in SIZES]


@pytest.fixture
def peak(monkeypatch):
    """A function that returns the bytes that a call holds at most; of Arrow's, those when a batch is read."""
    held = []

    def watched(batches):
        def watching(*arguments):
            for batch in batches(*arguments):
                held.append(pa.total_allocated_bytes())
                yield batch

        return watching

    monkeypatch.setattr(Source, "batches", watched(Source.batches))
    monkeypatch.setattr(converting, "_read_batches", watched(converting._read_batches))
    for module in (tables, npz, converting):
        monkeypatch.setattr(module, "ROWS", ROWS)
    monkeypatch.setattr(csv_files, "BLOCK", 2**16)

    def measure(function, *arguments):
        held[:] = []
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        function(*arguments)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most + max(held) - before

    return measure


def grows(short, long):
    return long > short + MORE


@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
def test_export(runs, peak, tmp_path, ending):
    assert not grows(*(peak(export, run, tmp_path / f"{run.name}.{ending}") for run in runs))


@pytest.mark.parametrize(("a", "b"), [("csv", "npz"), ("npz", "parquet"), ("parquet", "csv")])
def test_convert(runs, peak, tmp_path, a, b):
    files = [(tmp_path / f"{run.name}.{a}", tmp_path / f"{run.name}.{b}") for run in runs]
    for run, (source, _) in zip(runs, files, strict=True):
        export(run, source)
    assert not grows(*(peak(convert, *pair) for pair in files))


def test_what_holds_all_rows_is_found(runs, peak):
    assert grows(*(peak(lambda run=run: list(tables.transitions(Source(run)).batches)) for run in runs))
