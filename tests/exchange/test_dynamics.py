"""Known dynamics from file to file."""

import itertools
import os
import re

import numpy as np
import pytest
from decorated import decorated, same

from gosprl import InputError, TabularMDP
from gosprl.exchange import convert, drn, export

FORMATS = ("drn", "umb", "prism")
READ = {"drn": TabularMDP.from_drn, "umb": TabularMDP.from_umb, "prism": TabularMDP.from_prism}
NAMED = """@type: MDP
@parameters

@reward_models
energy time
@nr_states
2
@nr_choices
3
@model
state 0 [0, 0] init
\taction stay [1.5, 1]
\t\t0 : 0.1
\t\t1 : 0.9
\taction go [0.25, 2]
\t\t1 : 1
state 1 [0, 3] goal deadlock
\taction stay [0, 0]
\t\t1 : 1
"""


def place(folder, kind, name="model"):
    return folder / (name if kind == "prism" else f"{name}.{kind}")


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(FORMATS, 2)))
def test_every_bit_goes_along(tmp_path, a, b):
    mdp = decorated(3)
    getattr(mdp, f"to_{a}")(place(tmp_path, a))
    convert(place(tmp_path, a), place(tmp_path, b, "other"), b)
    same(READ[b](place(tmp_path, b, "other")), mdp)


@pytest.mark.parametrize("kind", FORMATS)
def test_names_of_actions_and_all_rewards_go_along(tmp_path, kind):
    (tmp_path / "a.drn").write_text(NAMED)
    convert(tmp_path / "a.drn", place(tmp_path, kind, "b"), kind)
    convert(place(tmp_path, kind, "b"), tmp_path / "c.drn")
    text = (tmp_path / "c.drn").read_text()
    assert text.index("action stay") < text.index("action go")
    assert "deadlock" not in text
    for name, expected in (("energy", [1.5, 0.25, 0]), ("time", [1, 2, 3])):
        mdp = TabularMDP.from_drn(tmp_path / "c.drn", rewards=name)
        np.testing.assert_array_equal(mdp.rewards, expected)
    assert mdp.labels == {"goal": (1,)}
    np.testing.assert_array_equal(mdp.prob, [0.1, 0.9, 1, 1])


def test_the_files_beside_a_tra_file(tmp_path):
    mdp = decorated(1)
    mdp.to_prism(tmp_path / "model")
    (tmp_path / "model" / "models.lab").write_text("of something else")
    (tmp_path / "model" / "modelx.trew").write_text("of something else")
    convert(tmp_path / "model" / "model.tra", tmp_path / "b.drn")
    same(TabularMDP.from_drn(tmp_path / "b.drn"), mdp)


def test_the_language_is_written_and_not_read(tmp_path):
    decorated(0).to_drn(tmp_path / "a.drn")
    convert(tmp_path / "a.drn", tmp_path / "b.prism")
    assert "endmodule" in (tmp_path / "b.prism").read_text()
    with pytest.raises(InputError, match="exportmodel"):
        convert(tmp_path / "b.prism", tmp_path / "c.drn")


@pytest.mark.parametrize(
    ("source", "target", "to", "said"),
    [
        ("a.drn", "b.csv", None, "known dynamics, not transitions"),
        ("a.drn", "b-v0", "minari", "known dynamics, not transitions"),
        ("a.drn", "b.dot", None, "known dynamics, not transitions"),
        ("a.csv", "b.drn", None, "--data"),
        ("a.csv", "b", "prism", "--data"),
        ("a.drn", "b", None, "to= (--to)"),
        ("none.drn", "b.umb", None, "there is no"),
        ("run", "b.drn", None, "gosprl export"),
        ("a.txt", "b.drn", None, "source: expected a name that ends with"),
    ],
)
def test_what_makes_no_sense_names_the_way_out(river_run, tmp_path, source, target, to, said):
    decorated(0).to_drn(tmp_path / "a.drn")
    (tmp_path / "a.csv").write_text("state,action,next_state\n0,1,2\n")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(InputError, match=re.escape(said)):
        convert(river_run if source == "run" else tmp_path / source, tmp_path / target, to)
    assert sorted(os.listdir(tmp_path)) == before


def test_intervals_and_cut_files_are_refused_and_leave_nothing(river_run, tmp_path):
    export(river_run, tmp_path / "learnt.drn")
    with pytest.raises(InputError, match="no intervals"):
        convert(tmp_path / "learnt.drn", tmp_path / "b.umb")
    (tmp_path / "cut.drn").write_text(NAMED[:-15])
    with pytest.raises(InputError, match=r"cut\.drn, line 19: expected"):
        convert(tmp_path / "cut.drn", tmp_path / "b.umb")
    assert sorted(os.listdir(tmp_path)) == ["cut.drn", "learnt.drn"]


def test_labels_that_no_format_can_carry_are_refused(tmp_path):
    mdp = decorated(0)
    mdp.labels = {"two words": (0,)}
    with pytest.raises(InputError, match="labels: expected names"):
        mdp.to_drn(tmp_path / "a.drn")
    assert not os.listdir(tmp_path)


def test_existing_files_are_replaced_only_by_force(tmp_path):
    decorated(0).to_drn(tmp_path / "a.drn")
    (tmp_path / "b.umb").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        convert(tmp_path / "a.drn", tmp_path / "b.umb")
    convert(tmp_path / "a.drn", tmp_path / "b.umb", force=True)
    same(TabularMDP.from_umb(tmp_path / "b.umb"), decorated(0))
    assert drn.read(tmp_path / "a.drn").num_states == 7
