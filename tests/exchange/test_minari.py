"""Minari loads its data sets by its own functions, with the values of the log."""

import shutil
import sys

import minari
import numpy as np
import pytest
from exported_logs import log_of, manifest_of, observations_of
from gymnasium.spaces import Discrete

import gosprl
from gosprl.errors import InputError
from gosprl.exchange import export
from gosprl.exchange import minari as writing
from gosprl.exchange.minari import id_of


def episodes_of(log):
    """The steps between resets, by hand."""
    found, current = [], []
    for i, reset in enumerate(log["reset"].tolist()):
        if reset:
            found, current = [*found, current] if current else found, []
        else:
            current.append(i)
    return [*found, current] if current else found


def in_this_process(step, task, root):
    """What a process of its own does, without the seconds that it takes to begin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(root.resolve()))
        patch.setattr(sys, "argv", ["", "", step, str(task)])
        writing.work()


@pytest.fixture(scope="module", params=["river", "maze", "lake", "fragile"])
def loaded(request, all_runs, tmp_path_factory):
    """Each run as a data set; the first is written as users do it, by processes."""
    run, result = all_runs[request.param]
    root = tmp_path_factory.mktemp("datasets")
    (root / "gosprl").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "river":
            patch.setattr(writing, "_in_child", in_this_process)
        export(run, root / "gosprl" / "own-v3", to="minari")
        patch.setenv("MINARI_DATASETS_PATH", str(root))
        yield minari.load_dataset("gosprl/own-v3"), run, result


def test_equal_values(loaded):
    data, run, result = loaded
    log = log_of(run)
    expected = episodes_of(log)
    following = np.where(log["crash"], data.observation_space.n - 1, log["next_state"])
    assert data.total_steps == result.steps
    assert data.total_episodes == len(expected)
    for episode, steps in zip(data.iterate_episodes(), expected, strict=True):
        assert np.array_equal(episode.observations, np.append(log["state"][steps[0]], following[steps]))
        assert np.array_equal(episode.actions, log["action"][steps])
        assert np.array_equal(episode.rewards, log["reward"][steps])
        assert np.array_equal(episode.terminations, log["terminated"][steps])
        assert np.array_equal(episode.truncations[:-1], log["truncated"][steps][:-1])
        assert episode.terminations[-1] or episode.truncations[-1]
        assert (episode.actions >= 0).all()


def test_metadata(loaded):
    data, run, _ = loaded
    said, manifest = data.storage.metadata["gosprl"], manifest_of(run)
    assert data.id == "gosprl/own-v3"
    assert list(minari.list_local_datasets()) == ["gosprl/own-v3"]
    assert (said["run"], said["seed"]) == (manifest["run"], manifest["seed"])
    assert said["versions"] == manifest["legs"][-1]["versions"]
    assert said.get("observations") == observations_of(run)
    assert isinstance(data.observation_space, Discrete)
    crashed = bool(log_of(run)["crash"].any())
    assert said.get("crash") == (said["states"] if crashed else None)
    assert data.observation_space.n == said["states"] + crashed


def test_names():
    assert id_of("lake") == "gosprl/lake-v0"
    assert id_of("lake-v12") == "gosprl/lake-v12"
    assert id_of("a-b_c") == "gosprl/a-b_c-v0"
    for name in ("", ".hidden", "a b", "a/b", "-v1", "a.b"):
        with pytest.raises(InputError, match="NAME-vK"):
            id_of(name)


def test_a_result_has_no_episodes(kept, tmp_path):
    with pytest.raises(InputError, match="order of its transitions"):
        kept[1].export(tmp_path / "own-v0", to="minari")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("loaded", ["river"], indirect=True)
def test_damaged_data_sets_are_refused_or_read(loaded, tmp_path):
    """Whatever HDF5 raises, it is an error about the data."""
    data, _, _ = loaded
    copy = tmp_path / "own-v3"
    shutil.copytree(data.storage.data_path.parent, copy)
    (file,) = (copy / "data").glob("*.hdf5")
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(12):
        end = int(rng.integers(len(whole)))
        file.write_bytes(whole[:end])
        refused += refuses(copy)
        changed = bytearray(whole)
        for i in rng.integers(len(whole), size=20):
            changed[i] ^= 255
        file.write_bytes(changed)
        refused += refuses(copy)
    assert refused >= 12


def refuses(data):
    try:
        gosprl.collect(gosprl.envs.make("riverswim6"), 1, data=data, data_order="collected", max_steps=1)
    except InputError as error:
        return "Minari data set" in str(error) or "Minari cannot load" in str(error)
    return False
