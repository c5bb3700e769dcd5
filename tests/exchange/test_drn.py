"""DRN: Storm reads what is written; round trips keep every bit; files of others are refused with line and reason."""

import contextlib

import numpy as np
import pytest
import stormpy
from decorated import damaged, decorated, same
from storm_oracle import known_values

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.exchange import drn

GOOD = """// a comment
@type: MDP
@value_type: double
@parameters

@reward_models
reward
@nr_states
2
@nr_choices
3
@model
state 0 [0.5] init
\taction a0 [1]
\t\t0 : 0.25
\t\t1 : 3/4
\taction a1 [0]
\t\t1 : 1
state 1 [0] goal
\taction a0 [2]
\t\t1 : 1
"""


@pytest.mark.parametrize("seed", range(5))
def test_a_round_trip_keeps_every_bit(seed, tmp_path):
    mdp = decorated(seed)
    mdp.to_drn(tmp_path / "x.drn")
    same(TabularMDP.from_drn(tmp_path / "x.drn"), mdp)


def test_without_rewards_and_labels(tmp_path):
    mdp = gosprl.envs.make("riverswim")
    mdp.to_drn(tmp_path / "x.drn")
    back = TabularMDP.from_drn(tmp_path / "x.drn")
    same(back, mdp)
    assert np.all(TabularMDP.from_drn(tmp_path / "x.drn", rewards="steps").rewards == 1)


def test_storm_reads_known_dynamics(tmp_path):
    mdp = decorated(0)
    drn.write(mdp, tmp_path / "x.drn")
    model = stormpy.build_model_from_drn(str(tmp_path / "x.drn"))
    found = stormpy.model_checking(model, stormpy.parse_property('R{"steps"}min=? [F "goal"]')).get_value_vector()
    P = mdp.dense()
    np.testing.assert_allclose(list(found), known_values(P, np.ones(P.shape[:2]), [1, 4]), rtol=1e-5)


def test_a_file_of_another_tool(tmp_path):
    (tmp_path / "x.drn").write_text(GOOD)
    mdp = TabularMDP.from_drn(tmp_path / "x.drn")
    assert (mdp.num_states, mdp.start) == (2, 0)
    assert mdp.labels == {"goal": (1,)}
    np.testing.assert_array_equal(mdp.dense(), [[[0.25, 0.75], [0, 1]], [[0, 1], [0, 0]]])
    np.testing.assert_array_equal(mdp.rewards, [1.5, 0.5, 2])  # rewards of the state and of the choice


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@type: MDP", "@type: POMDP", "line 2: expected @type: one of mdp, dtmc, got 'POMDP'"),
        ("double", "double-interval", "line 3: expected @value_type: double or rational: .* no intervals"),
        ("double", "parametric", "line 3: expected @value_type"),
        ("0.25", "[0.2, 0.3]", "line 15: expected a probability: a TabularMDP has no intervals"),
        ("0.25", "x", "line 15: expected a probability, got 'x'"),
        ("0.25", "nan", "line 15: expected a probability"),
        ("0.25", "-0.25", r"line 15: expected a probability in \[0, 1\]"),
        ("0.25", "1/0", "line 15: expected a probability"),
        ("0.25", "0.5", r"sum to one, but choice 0 \(action a0\) of state 0 sums to 1.25"),
        ("\t\t0 : 0.25\n", "\t\t1 : 0.25\n", "line 16: expected each next state once"),
        ("\t\t0 : 0.25\n", "\t\t7 : 0.25\n", "expected next states below 2, got 7"),
        ("\t\t0 : 0.25\n", f"\t\t{10**30} : 0.25\n", "line 15: expected the number of the next state"),
        ("@nr_states\n2", f"@nr_states\n{10**12}", "expected 1000000000000 by @nr_states: the file is cut off"),
        ("@nr_choices\n3", "@nr_choices\n4", "expected 4 by @nr_choices"),
        ("state 1", "state 2", "line 19: expected state 1, as states are in order, got '2'"),
        ("state 0 [0.5] init", "state 0 [0.5]", "expected one state with the label init, the start, got 0"),
        ("goal", "init", "expected one state with the label init, the start, got 2"),
        ("[0.5]", "[0.5, 1]", r"line 13: expected \[1 rewards\]"),
        ("[0.5]", "[0.5", r"line 13: expected \[1 rewards\]"),
        ("[0.5]", "[inf]", "line 13: expected a reward, got 'inf'"),
        ("@parameters\n", "@parameters\np q", "line 5: expected no parameters"),
        ("@model\n", "", "line 12: expected the number after @nr_choices"),
        ("@nr_states", "@nr_cats", "line 8: expected a field of DRN"),
        ("\t\t1 : 1\nstate 1", "state 1", "line 18: expected transitions of state 0, action a1"),
        ("\taction a0 [1]\n", "", "line 14: expected an action before its transitions"),
        ("goal", "goal goal", "line 19: expected each label once"),
        ("\t\t1 : 3/4", "\t\tnonsense", "line 16: expected a state, an action or a transition"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(old, new, message, tmp_path):
    assert old in GOOD
    (tmp_path / "x.drn").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        TabularMDP.from_drn(tmp_path / "x.drn")


def test_every_cut_is_refused_or_read_whole(tmp_path):
    whole = GOOD.rstrip("\n")
    for end in range(len(whole)):
        (tmp_path / "x.drn").write_text(whole[:end])
        with pytest.raises(InputError):
            TabularMDP.from_drn(tmp_path / "x.drn")


def test_damaged_bytes_are_refused_or_read(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(300):
        (tmp_path / "x.drn").write_bytes(damaged(GOOD.encode(), rng))
        with contextlib.suppress(InputError):
            TabularMDP.from_drn(tmp_path / "x.drn")


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 100, b"PK\x03\x04 zip", b"{}", b"@model", b"\n\n\n"])
def test_foreign_files_are_refused(content, tmp_path):
    (tmp_path / "x.drn").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.drn, line \d+: expected"):
        TabularMDP.from_drn(tmp_path / "x.drn")


def test_a_missing_file_and_a_missing_reward_structure(tmp_path):
    with pytest.raises(InputError, match="there is none at"):
        TabularMDP.from_drn(tmp_path / "none.drn")
    (tmp_path / "x.drn").write_text(GOOD)
    with pytest.raises(InputError, match=r"rewards: expected one of \['reward'\]"):
        TabularMDP.from_drn(tmp_path / "x.drn", rewards="cost")


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, monkeypatch):
    (tmp_path / "x.drn").write_text("old")
    monkeypatch.setattr(drn, "_lines", lambda mdp: (1 / 0 for _ in range(1)))
    with pytest.raises(InputError, match="exists"):
        drn.write(decorated(0), tmp_path / "x.drn")
    with pytest.raises(ZeroDivisionError):
        drn.write(decorated(0), tmp_path / "x.drn", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.drn"]
    assert (tmp_path / "x.drn").read_text() == "old"
    with pytest.raises(InputError, match="file: expected a file in an existing directory"):
        drn.write(decorated(0), tmp_path / "no" / "x.drn")
