"""PRISM's explicit files and language: round trips, Storm's answers, and bad files with line and reason."""

import contextlib

import numpy as np
import pytest
import stormpy
from decorated import damaged, decorated, same
from storm_oracle import known_values

import gosprl
from gosprl import InputError, TabularMDP
from gosprl.exchange import drn, prism, umb
from gosprl.exchange.learnt import as_interval_mdp

TRA = "2 3 4\n0 0 0 0.25 a0\n0 0 1 0.75 a0\n0 1 1 1 a1\n1 0 1 1 a0\n"
LAB = '0="init" 1="deadlock" 2="goal"\n0: 0\n1: 2\n'
STA = "(x,y)\n0:(0,1)\n1:(1,1)\n"
SREW = '# Reward structure "reward"\n# State rewards\n2 1\n0 0.5\n'
TREW = '# Reward structure "reward"\n# Transition rewards\n2 3 3\n0 0 0 4\n0 0 1 8\n1 0 1 2\n'


def write(directory, **files):
    for kind, text in {"tra": TRA, "lab": LAB, "sta": STA, "srew": SREW, "trew": TREW, **files}.items():
        (directory / f"m.{kind}").write_text(text)


def storm_steps(directory):
    """Storm's expected steps to "goal" from PRISM's files: it wants another header and labels by name."""
    transitions = (directory / "model.tra").read_text().split("\n")[1:-1]
    (directory / "s.tra").write_text("mdp\n" + "\n".join(" ".join(line.split()[:4]) for line in transitions) + "\n")
    header, *labelled = (directory / "model.lab").read_text().split("\n")[:-1]
    names = dict(word.split("=") for word in header.replace('"', "").split())
    lines = [f"{line.split(':')[0]} {' '.join(names[i] for i in line.split(':')[1].split())}" for line in labelled]
    (directory / "s.lab").write_text(f"#DECLARATION\n{' '.join(names.values())}\n#END\n" + "\n".join(lines) + "\n")
    rewards = (directory / "model1.trew").read_text().split("\n")
    assert rewards[0] == '# Reward structure "steps"'
    (directory / "s.rew").write_text("mdp\n" + "\n".join(rewards[3:]))
    model = stormpy.build_model_from_explicit(
        str(directory / "s.tra"), str(directory / "s.lab"), transition_rewards=str(directory / "s.rew")
    )
    return list(stormpy.model_checking(model, stormpy.parse_property('Rmin=? [F "goal"]')).get_value_vector())


@pytest.mark.parametrize("seed", range(5))
def test_a_round_trip_keeps_every_bit(seed, tmp_path):
    mdp = decorated(seed)
    mdp.to_prism(tmp_path / "model")
    same(TabularMDP.from_prism(tmp_path / "model"), mdp)


def test_storm_reads_the_explicit_files(tmp_path):
    mdp = decorated(0)
    mdp.to_prism(tmp_path / "model")
    P = mdp.dense()
    np.testing.assert_allclose(
        storm_steps(tmp_path / "model"), known_values(P, np.ones(P.shape[:2]), [1, 4]), rtol=1e-5
    )


def test_storm_reads_the_language(tmp_path):
    mdp = decorated(0)
    mdp.to_prism(tmp_path / "m.prism")
    program = stormpy.parse_prism_program(str(tmp_path / "m.prism"))
    model = stormpy.build_model(program)
    found = stormpy.model_checking(model, stormpy.parse_property('R{"steps"}min=? [F "goal"]')).get_value_vector()
    P = mdp.dense()
    expected = known_values(P, np.ones(P.shape[:2]), [1, 4])[mdp.start]
    assert found[model.initial_states[0]] == pytest.approx(expected, rel=1e-5)


def test_files_of_an_interval_model(tmp_path):
    result = gosprl.collect(decorated(0), 5, seed=0, max_steps=500)
    mdp = as_interval_mdp(result.model, labels={"goal": [1]})
    prism.write(mdp, tmp_path / "model")
    lines = (tmp_path / "model" / "model.tra").read_text().splitlines()
    assert lines[0] == f"{mdp.num_states} {mdp.num_rows} {len(mdp.succ)}"
    entries = [line.split() for line in lines[1:]]
    assert [int(entry[2]) for entry in entries] == mdp.succ.tolist()
    ends = [[float(end) for end in entry[3].strip("[]").split(",")] for entry in entries]
    assert ends == np.stack([mdp.lower, mdp.upper], axis=1).tolist()
    row = np.repeat(np.arange(mdp.num_rows), np.diff(mdp.ptr))
    state = np.repeat(np.arange(mdp.num_states), np.diff(mdp.first))
    assert [(int(s), int(c)) for s, c, *_ in entries] == [(state[r], r - mdp.first[state[r]]) for r in row]
    assert [entry[4] for entry in entries] == [mdp.actions[r] for r in row]
    assert "promise: " in (tmp_path / "model" / "README.txt").read_text()
    with pytest.raises(InputError, match=r"model\.tra, line 2: expected a probability: a TabularMDP has no intervals"):
        TabularMDP.from_prism(tmp_path / "model")


def test_point_estimates_give_the_same_answers_in_all_formats(tmp_path):
    model = gosprl.collect(decorated(0), 20, seed=0).model
    options = {"labels": {"goal": [1, 4]}, "point": True}
    prism.write(model, tmp_path / "model", **options)
    drn.write(model, tmp_path / "m.drn", **options)
    umb.write(model, tmp_path / "m.umb", **options)
    steps = stormpy.parse_property('R{"steps"}min=? [F "goal"]')
    theirs = storm_steps(tmp_path / "model")
    for built in (
        stormpy.build_model_from_drn(str(tmp_path / "m.drn")),
        stormpy.build_model_from_umb(str(tmp_path / "m.umb")),
    ):
        np.testing.assert_array_equal(list(stormpy.model_checking(built, steps).get_value_vector()), theirs)
    P = model.dense()
    np.testing.assert_allclose(theirs, known_values(P, np.ones(P.shape[:2]), [1, 4]), rtol=1e-5)


@pytest.mark.parametrize("kind", ["tra", "lab", "sta", "srew", "trew"])
def test_damaged_bytes_are_refused_or_read(kind, tmp_path):
    rng = np.random.default_rng(0)
    good = {"tra": TRA, "lab": LAB, "sta": STA, "srew": SREW, "trew": TREW}[kind]
    write(tmp_path)
    for _ in range(150):
        (tmp_path / f"m.{kind}").write_bytes(damaged(good.encode(), rng))
        with contextlib.suppress(InputError):
            TabularMDP.from_prism(tmp_path)


def test_a_directory_with_files_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="an existing directory, which is never replaced"):
        decorated(0).to_prism(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_model_too_large_for_the_language_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(prism, "MOST", 10)
    with pytest.raises(InputError, match="at most 10 transitions in PRISM's language"):
        decorated(0).to_prism(tmp_path / "m.prism")
    assert not list(tmp_path.iterdir())


def test_files_of_another_tool(tmp_path):
    write(tmp_path)
    mdp = TabularMDP.from_prism(tmp_path)
    assert mdp.labels == {"goal": (1,)}
    np.testing.assert_array_equal(mdp.dense(), [[[0.25, 0.75], [0, 1]], [[0, 1], [0, 0]]])
    np.testing.assert_array_equal(mdp.rewards, [0.5 + 0.25 * 4 + 0.75 * 8, 0.5, 2])
    alone = TabularMDP.from_prism(tmp_path / "m.tra")
    assert (alone.start, alone.labels, alone.rewards) == (0, {}, None)


def test_a_markov_chain(tmp_path):
    (tmp_path / "m.tra").write_text("2 3\n0 0 0.5\n0 1 0.5\n1 0 1\n")
    (tmp_path / "m.trew").write_text("2 1\n1 0 3\n")
    mdp = TabularMDP.from_prism(tmp_path)
    np.testing.assert_array_equal(mdp.dense(), [[[0.5, 0.5]], [[1, 0]]])
    np.testing.assert_array_equal(mdp.rewards, [0, 3])


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("tra", TRA.replace("2 3 4", "2 3"), r"m\.tra, line 2: expected"),
        ("tra", TRA.replace("2 3 4", f"{10**12} 3 4"), r"m\.tra, line 6: expected \(1000000000000, 3, 4\) states"),
        ("tra", TRA.replace("2 3 4", f"{10**40} 3 4"), r"m\.tra, line 1: expected a header of numbers"),
        ("tra", TRA.replace("2 3 4", "2 3 5"), "line 6: expected .* by the header"),
        ("tra", TRA.replace("0.25", "[0.2,0.3]"), "line 2: expected a probability: a TabularMDP has no intervals"),
        ("tra", TRA.replace("0.25", "0.5"), r"sum to one, but choice 0 \(action a0\) of state 0 sums to 1.25"),
        ("tra", TRA.replace("0 0 0 0.25", "0 0 1 0.25"), "line 3: expected each next state once"),
        ("tra", TRA.replace("0 0 0 0.25", "0 0 9 0.25"), "line 2: expected a next state below 2, got '9'"),
        ("tra", TRA.replace("0.75 a0", "0.75 a1"), "line 3: expected one action for choice 0 of state 0"),
        ("tra", "", "line 1: expected a header, got 'an empty file'"),
        ("tra", "\x00\x01", "expected a header of numbers"),
        ("lab", LAB.replace('2="goal"', "goal"), r"m\.lab, line 1: expected distinct labels"),
        ("lab", LAB.replace("1: 2", "1: 7"), r"m\.lab, line 3: expected labels out of"),
        ("lab", LAB.replace("1: 2", "5: 2"), r"m\.lab, line 3: expected a state below 2"),
        ("lab", LAB.replace("0: 0\n", ""), "expected one state with the label init, the start, got 0"),
        ("lab", LAB.replace("1: 2", "0: 2"), "line 3: expected `state: labels` with increasing states"),
        ("sta", STA.replace("1:(1,1)\n", ""), r"m\.sta, line 3: expected 2 states"),
        ("sta", STA + "2:(0,0)\n", r"m\.sta, line 5: expected 2 states"),
        ("sta", "x" + STA, r"m\.sta, line 1: expected the names"),
        ("srew", SREW.replace("2 1", "3 1"), r"m\.srew, line 3: expected a header that begins with \(2,\)"),
        ("srew", SREW.replace("0 0.5", "0 nan"), r"m\.srew, line 4: expected a reward, got 'nan'"),
        ("srew", SREW + "0 1\n", r"m\.srew, line 5: expected each state once"),
        ("srew", SREW.replace("2 1", f"2 {10**12}"), r"m\.srew, line 5: expected 1000000000000 entries"),
        ("trew", TREW.replace("2 3 3", "2 3 4"), r"m\.trew, line 7: expected 4 entries"),
        ("trew", TREW.replace("0 0 0 4", "0 5 0 4"), r"m\.trew, line 4: expected transitions of the \.tra file"),
        ("trew", TREW.replace("1 0 1 2", "1 0 0 2"), "state 1 has a reward for the next state 0, to which"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(kind, text, message, tmp_path):
    write(tmp_path, **{kind: text})
    with pytest.raises(InputError, match=message):
        TabularMDP.from_prism(tmp_path)


def test_files_that_do_not_belong_together(tmp_path):
    with pytest.raises(InputError, match=r"files: expected one \.tra file, got \[\]"):
        TabularMDP.from_prism(tmp_path)
    write(tmp_path)
    (tmp_path / "n.tra").write_text(TRA)
    with pytest.raises(InputError, match=r"files: expected one \.tra file, got \['m.tra', 'n.tra'\]"):
        TabularMDP.from_prism(tmp_path)
    with pytest.raises(InputError, match=r"files: expected \.tra, .* got '.csv'"):
        TabularMDP.from_prism(tmp_path / "m.tra", tmp_path / "x.csv")


def test_the_reward_structure_is_asked_for_if_there_are_several(tmp_path):
    write(tmp_path, srew=SREW.replace('"reward"', '"one"'), trew=TREW.replace('"reward"', '"two"'))
    with pytest.raises(InputError, match="rewards: expected the name of one"):
        TabularMDP.from_prism(tmp_path)
    np.testing.assert_array_equal(TabularMDP.from_prism(tmp_path, rewards="one").rewards, [0.5, 0.5, 0])
