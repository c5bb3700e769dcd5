"""UMB by umbi: round trips, Storm's answers, and bad files."""

import builtins
import contextlib
import io
import json
import tarfile

import gymnasium
import numpy as np
import pytest
import stormpy
from decorated import damaged, decorated, same
from storm_oracle import known_values

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.exchange import umb


def repacked(source, target, change):
    """Copy an archive, its files changed by a function of their names and bytes; None leaves one out."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for member in old.getmembers():
            data = change(member.name, old.extractfile(member).read())
            if data is not None:
                info = tarfile.TarInfo(member.name)
                info.size = len(data)
                new.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("seed", range(5))
def test_a_round_trip_keeps_every_bit(seed, tmp_path):
    mdp = decorated(seed)
    mdp.to_umb(tmp_path / "x.umb")
    same(TabularMDP.from_umb(tmp_path / "x.umb"), mdp)


def test_storm_reads_known_dynamics(tmp_path):
    mdp = decorated(0)
    mdp.to_umb(tmp_path / "x.umb")
    model = stormpy.build_model_from_umb(str(tmp_path / "x.umb"))
    found = stormpy.model_checking(model, stormpy.parse_property('R{"steps"}min=? [F "goal"]')).get_value_vector()
    P = mdp.dense()
    np.testing.assert_allclose(list(found), known_values(P, np.ones(P.shape[:2]), [1, 4]), rtol=1e-5)


def test_rewards_are_intervals_and_the_notes_are_kept(tmp_path):
    result = gosprl.collect(gymnasium.make("FrozenLake-v1", is_slippery=False), 3, seed=0, max_steps=5000)
    assert result.model.reward_sum.any()
    umb.write(result.model, tmp_path / "x.umb", labels={"goal": [15]})
    model = stormpy.build_model_from_umb(str(tmp_path / "x.umb"))
    assert {"steps", "reward", "reward_lower", "reward_upper", "reward_interval"} == set(model.reward_models)
    low, high, both = (
        model.reward_models[name].state_action_rewards for name in ("reward_lower", "reward_upper", "reward_interval")
    )
    assert any(b.lower() != b.upper() for b in both)
    assert [b.lower() for b in both] == [b.lower() for b in low]
    assert [b.upper() for b in both] == [b.upper() for b in high]
    with tarfile.open(tmp_path / "x.umb") as archive:
        comment = json.load(archive.extractfile("index.json"))["model-data"]["comment"]
    assert "promise: with probability at least 1 - delta = 0.9" in comment
    with pytest.raises(InputError, match="a TabularMDP has no intervals"):
        TabularMDP.from_umb(tmp_path / "x.umb")


@pytest.mark.parametrize("content", [b"", b"\x00" * 2000, b"PK\x03\x04", b"\x1f\x8b\x08 cut"])
def test_foreign_files_are_refused(content, tmp_path):
    (tmp_path / "x.umb").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.umb: expected a UMB file"):
        TabularMDP.from_umb(tmp_path / "x.umb")


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    decorated(0).to_umb(tmp_path / "x.umb")
    data = (tmp_path / "x.umb").read_bytes()
    for end in (*range(0, len(data) - 8, max(1, len(data) // 40)), *range(len(data) - 24, len(data) - 8)):
        (tmp_path / "y.umb").write_bytes(data[:end])
        with pytest.raises(InputError, match=r"y\.umb"):
            TabularMDP.from_umb(tmp_path / "y.umb")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("#states", 10**12, "index.json: expected #states that fit into"),
        ("#states", -1, "index.json: expected #states that fit into"),
        ("#states", 6, r"x\.umb"),
        ("#branches", 3, r"x\.umb"),
        ("#choices", 10**15, "index.json: expected #choices that fit into"),
        ("#players", 2, "expected an MDP or a Markov chain in discrete time"),
        ("time", "stochastic", "expected an MDP or a Markov chain in discrete time"),
    ],
)
def test_claims_of_the_index_are_compared_with_the_bytes(field, value, message, tmp_path):
    def change(name, data):
        if name != "index.json":
            return data
        index = json.loads(data)
        index["transition-system"][field] = value
        return json.dumps(index).encode()

    decorated(0).to_umb(tmp_path / "good.umb")
    repacked(tmp_path / "good.umb", tmp_path / "x.umb", change)
    with pytest.raises(InputError, match=message):
        TabularMDP.from_umb(tmp_path / "x.umb")


@pytest.mark.parametrize(
    "part", ["branch-to-target.bin", "choice-to-branches.bin", "state-is-initial.bin", "index.json"]
)
def test_missing_and_damaged_parts_are_refused(part, tmp_path):
    decorated(0).to_umb(tmp_path / "good.umb")
    for change in [lambda d: None, lambda d: d[: len(d) // 9], lambda d: b"\xff" * len(d)]:
        repacked(
            tmp_path / "good.umb", tmp_path / "x.umb", lambda name, d, change=change: change(d) if name == part else d
        )
        with pytest.raises(InputError, match=r"x\.umb"):
            TabularMDP.from_umb(tmp_path / "x.umb")


def test_damaged_bytes_are_refused_or_read(tmp_path):
    decorated(0).to_umb(tmp_path / "good.umb")
    with tarfile.open(tmp_path / "good.umb") as archive:
        parts = archive.getnames()
    rng = np.random.default_rng(0)
    for _ in range(80):
        part = parts[rng.integers(len(parts))]
        repacked(
            tmp_path / "good.umb",
            tmp_path / "x.umb",
            lambda name, data, part=part: damaged(data, rng) if name == part and data else data,
        )
        with contextlib.suppress(InputError):
            TabularMDP.from_umb(tmp_path / "x.umb")


def test_an_archive_that_unpacks_to_far_more_than_it_has(tmp_path):
    """64 MiB of zeros in 64 KiB: reading them takes a hundred times as much, whatever the machine has."""
    decorated(0).to_umb(tmp_path / "good.umb")
    with tarfile.open(tmp_path / "good.umb") as old, tarfile.open(tmp_path / "x.umb", "w:gz") as new:
        for member in old:
            new.addfile(member, old.extractfile(member))
        zeros = tarfile.TarInfo("annotations/zeros.bin")
        zeros.size = 2**26
        new.addfile(zeros, io.BytesIO(bytes(2**26)))
    with pytest.raises(InputError, match=r"x\.umb: expected at most 8,388,608 bytes unpacked, 64 for each of its own"):
        TabularMDP.from_umb(tmp_path / "x.umb")


def test_an_archive_that_claims_more_than_the_memory(tmp_path):
    info = tarfile.TarInfo("index.json")
    info.size = 10**15
    (tmp_path / "x.umb").write_bytes(info.tobuf() + b"{}" * 512)
    with pytest.raises(InputError, match=r"x\.umb"):
        TabularMDP.from_umb(tmp_path / "x.umb")


def test_without_umbi_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name == "umbi":
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r"pip install gosprl\[umb\]"):
        decorated(0).to_umb(tmp_path / "x.umb")
    with pytest.raises(InputError, match=r"pip install gosprl\[umb\]"):
        TabularMDP.from_umb(tmp_path / "x.umb")
    assert not list(tmp_path.iterdir())
