"""The same samples twice: refused, whatever they are called, and through what runs began with."""

import json
import shutil

import numpy as np
import pytest

import gosprl
from gosprl import InputError
from gosprl.envs.tabular_env import TabularEnv
from gosprl.exchange import export
from gosprl.model.origins import Origin
from gosprl.runs.files import write_json

COIN = gosprl.TabularMDP(np.full((2, 1, 2), 0.5), name="coin")
CYCLE = gosprl.TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), name="cycle")  # nothing is left to chance
MANY = 10**6


def collected(directory=None, seed=0, system=COIN, steps=60, **options):
    return gosprl.collect(system, MANY, seed=seed, max_steps=steps, out=directory, **options)


def both(first, second, order=None, system=COIN):
    return gosprl.collect(system, MANY, seed=99, max_steps=10, data=[first, second], data_order=order)


@pytest.fixture
def run(tmp_path):
    collected(tmp_path / "run")
    return tmp_path / "run"


def renamed(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy", None


def longer(run, tmp_path):
    shutil.copytree(run, tmp_path / "longer")
    gosprl.resume(tmp_path / "longer", max_steps=90)
    return tmp_path / "longer", None


def of_the_same_seed(run, tmp_path):
    collected(tmp_path / "again", steps=100)
    return tmp_path / "again", None


def begun_with_it(run, tmp_path):
    collected(tmp_path / "next", seed=1, data=run)
    return tmp_path / "next", None


def begun_with_one_begun_with_it(run, tmp_path):
    collected(tmp_path / "next", seed=1, data=run)
    collected(tmp_path / "last", seed=2, data=tmp_path / "next")
    return tmp_path / "last", None


def exported(kind):
    def export_it(run, tmp_path):
        export(run, tmp_path / f"rows.{kind}")
        return tmp_path / f"rows.{kind}", "collected"

    return export_it


def exported_next(run, tmp_path):
    collected(tmp_path / "next", seed=1, data=run)
    export(tmp_path / "next", tmp_path / "next.parquet")
    return tmp_path / "next.parquet", "collected"


def result(run, tmp_path):
    return gosprl.resume(run, max_steps=61), "collected"


def result_of_the_same_seed(run, tmp_path):
    return collected(), "collected"


def result_begun_with_it(run, tmp_path):
    return collected(seed=1, data=run), "collected"


def collector_begun_with_it(run, tmp_path):
    model = collected(seed=1, data=run).model
    return gosprl.Collector(model=model, need=MANY, seed=3).run(COIN, 10), "collected"


OF_A_RUN = [
    renamed,
    longer,
    of_the_same_seed,
    begun_with_it,
    begun_with_one_begun_with_it,
    *(exported(kind) for kind in ("parquet", "csv", "npz")),
    exported_next,
    result,
    result_of_the_same_seed,
    result_begun_with_it,
    collector_begun_with_it,
]


@pytest.mark.parametrize("other", OF_A_RUN, ids=lambda other: other.__qualname__)
@pytest.mark.parametrize("turned", [False, True])
def test_a_run_and_what_has_its_samples_are_refused(other, turned, run, tmp_path):
    second, order = other(run, tmp_path)
    first, second = (second, run) if turned else (run, second)
    with pytest.raises(
        InputError, match=r"^data: .* and .* have the same samples \(.*\), and each counts once; give"
    ) as e:
        both(first, second, order)
    assert str(run) in str(e.value)
    assert "source 1" in str(e.value)
    assert "source 2" in str(e.value)


def test_the_same_run_twice_is_refused_and_nothing_is_written(run, tmp_path):
    with pytest.raises(InputError, match=r"run \(source 1\) and .*run \(source 2\) have the same samples \(both are"):
        gosprl.collect(COIN, MANY, seed=1, data=[run, run], out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_two_runs_that_began_with_the_same_one_are_refused(run, tmp_path):
    for i in (1, 2):
        collected(tmp_path / f"b{i}", seed=i, data=run)
    with pytest.raises(
        InputError, match=r"run, which is in .*b1 \(source 1\), and .*run, which is in .*b2 \(source 2\),"
    ):
        both(tmp_path / "b1", tmp_path / "b2")


ARRAYS = ([0, 1, 0], [0, 0, 0], [1, 0, 0])


def frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"s": ARRAYS[0], "a": ARRAYS[1], "s_next": ARRAYS[2]})


def of_model():
    model = gosprl.EmpiricalModel(2, 1)
    model.update(*ARRAYS)
    return model


def csv_of(tmp_path, name="rows.csv"):
    rows = "\n".join(",".join(map(str, row)) for row in zip(*ARRAYS, strict=True))
    (tmp_path / name).write_text(f"s,a,s_next\n{rows}\n")
    return tmp_path / name


@pytest.mark.parametrize("order", ["collected", "unknown"])
@pytest.mark.parametrize("first", ["arrays", "frame", "csv"])
@pytest.mark.parametrize("second", ["arrays", "frame", "csv"])
def test_equal_rows_are_refused_in_whatever_form(first, second, order, tmp_path):
    forms = {"arrays": lambda: ARRAYS, "frame": frame, "csv": lambda: csv_of(tmp_path)}
    with pytest.raises(InputError, match=r"the same (rows|file)"):
        both(forms[first](), forms[second](), order)


def test_equal_models_are_refused():
    with pytest.raises(InputError, match=r"the model \(source 1\) and the model \(source 2\) .*the same counts"):
        both(of_model(), of_model(), "unknown")
    other = of_model()
    other.update(0, 0, 1)
    both(of_model(), other, "unknown")


def test_rows_of_an_environment_are_known_by_observation(tmp_path):
    env = {"system": TabularEnv(COIN), "steps": 40}
    collected(tmp_path / "a", **env)
    export(tmp_path / "a", tmp_path / "a.csv")
    collected(tmp_path / "b", seed=1, **env)
    with pytest.raises(InputError, match="the same rows"):
        both(tmp_path / "a", tmp_path / "a.csv", "collected", TabularEnv(COIN))
    both(tmp_path / "a", tmp_path / "b", None, TabularEnv(COIN))
    other = gosprl.collect(
        TabularEnv(COIN), MANY, seed=9, max_steps=5, data=[tmp_path / "b", tmp_path / "a.csv"], data_order="collected"
    )
    assert other.counts.sum() == 85


def test_equal_samples_of_different_runs_are_no_copies(tmp_path):
    """Where nothing is left to chance, all runs are equal."""
    for seed in (0, 1):
        collected(tmp_path / str(seed), seed=seed, system=CYCLE)
    taken = both(tmp_path / "0", tmp_path / "1", None, CYCLE)
    assert taken.counts.sum() == 130
    results = [collected(seed=seed, system=CYCLE) for seed in (2, 3)]
    assert both(*results, "collected", CYCLE).counts.sum() == 130


def test_other_sources_are_taken(run, tmp_path):
    collected(tmp_path / "other", seed=1)
    assert both(run, tmp_path / "other").counts.sum() == 130
    assert both(run, ARRAYS, "collected").counts.sum() == 73
    again = collected(tmp_path / "third", seed=0, data=[run, tmp_path / "other"])
    assert again.counts.sum() == 180
    assert both(tmp_path / "third", ARRAYS, "collected").counts.sum() == 193


def test_the_way_out_of_two_runs_with_one_seed(run, tmp_path):
    collected(tmp_path / "again", steps=100)
    with pytest.raises(InputError, match="collect the other with another seed; if the system does not draw"):
        both(run, tmp_path / "again")
    export(tmp_path / "again", tmp_path / "again.parquet")
    assert both(run, tmp_path / "again.parquet", "collected").counts.sum() == 170


def test_a_run_is_no_data_of_its_own(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    collected(tmp_path / "next", seed=1, data=run)
    before = (run / "manifest.json").read_bytes()
    for data in (run, tmp_path / "copy", tmp_path / "next", [tmp_path / "next"]):
        with pytest.raises(InputError, match=r"out, data: the run in .*run is among the data, or is part of them"):
            collected(run, data=data, steps=90)
    assert (run / "manifest.json").read_bytes() == before
    assert collected(tmp_path / "next", seed=1, data=run, steps=70).counts.sum() == 130  # that one goes on


def test_manifests_have_the_identities_of_all_sources(run, tmp_path):
    collected(tmp_path / "next", seed=1, data=run)
    collected(tmp_path / "last", seed=2, data=[tmp_path / "next", ARRAYS], data_order="collected")
    ids = {name: json.loads((tmp_path / name / "manifest.json").read_text())["run"] for name in ("run", "next")}
    first, second = json.loads((tmp_path / "last" / "manifest.json").read_text())["data"]["sources"]
    assert first["ids"][0] == f"run:{ids['next']}"
    assert {one.partition(":")[0] for one in first["ids"]} == {"run", "walk", "log", "rows"}
    assert [one["name"] for one in first["within"]] == [str(run)]
    assert first["within"][0]["ids"][0] == f"run:{ids['run']}"
    assert [one.partition(":")[0] for one in second["ids"]] == ["rows"]
    assert second["within"] == []
    assert gosprl.runs.verify(tmp_path / "last").ok
    resumed = gosprl.resume(tmp_path / "last", max_steps=61)
    with pytest.raises(InputError, match="have the same samples"):
        both(resumed, ARRAYS, "collected")


def test_sources_of_before_are_known_by_their_logs(run, tmp_path):
    collected(tmp_path / "next", seed=1, data=run)
    file = tmp_path / "next" / "manifest.json"
    manifest = json.loads(file.read_text())
    for name in ("ids", "within"):
        del manifest["data"]["sources"][0][name]
    del manifest["digest"]
    write_json(file, manifest)
    assert gosprl.runs.verify(tmp_path / "next").ok
    with pytest.raises(
        InputError, match=r"run, which is in .*next \(source 2\),.* have the same samples \(both have the same log"
    ):
        both(run, tmp_path / "next")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ids", "run:1"),
        ("ids", [3]),
        ("ids", ["x" * 257]),
        ("within", [3]),
        ("within", {}),
        ("within", [{"name": "a"}]),
        ("within", [{"name": 3, "ids": []}]),
        ("within", [{"name": "a", "ids": [1]}]),
    ],
)
def test_identities_that_are_none_are_damage(name, value, run, tmp_path):
    collected(tmp_path / "next", seed=1, data=run)
    file = tmp_path / "next" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["data"]["sources"][0][name] = value
    del manifest["digest"]
    write_json(file, manifest)
    assert gosprl.runs.verify(tmp_path / "next").damaged


def test_what_is_shared():
    run, copy = Origin("a", ("run:1", "rows:2")), Origin("b", ("rows:2",))
    assert run.shared_with(Origin("b", ("walk:1", "run:1"))) == "run:1"
    assert run.shared_with(Origin("b", ("run:3", "rows:2"))) == ""  # known to be others
    assert run.shared_with(copy) == copy.shared_with(run) == "rows:2"
    assert run.shared_with(Origin("b", ("run:2", "rows:1"))) == ""
