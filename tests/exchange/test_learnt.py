"""The learnt interval MDP: its support, labels, rewards and notes; and Storm's answers against ours and the truth.

Statistical tests have fixed seeds; the false-alarm rate is 1e-6 (evidence.exchange).
"""

import gymnasium
import numpy as np
import pytest

import gosprl
from evidence.exchange import DELTA, FALSE_ALARM, SAME, Given, answer, p_value, run, storm, support
from gosprl import EmpiricalModel, InputError
from gosprl.exchange import drn
from gosprl.exchange.interval import IntervalMDP, known
from gosprl.exchange.learnt import TINY, as_interval_mdp
from gosprl.sets.families import as_family


def counted():
    """Three states, two actions: (0, 0) saw 1 and 2, (0, 1) saw 0, (1, 0) saw 1; the other pairs saw nothing."""
    return EmpiricalModel.from_transitions(
        [0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [1, 1, 2, 0, 1], states=3, actions=2, rewards=[1, 0, 0, 1, 0.5]
    )


def row(mdp, s, choice):
    entries = slice(*mdp.ptr[mdp.first[s] + choice : mdp.first[s] + choice + 2])
    return mdp.succ[entries].tolist(), mdp.lower[entries], mdp.upper[entries]


def test_the_support_is_what_was_seen_with_the_ends_of_the_sets():
    model = counted()
    mdp, sets = as_interval_mdp(model), gosprl.sets.kl.KL(0.1).intervals(model)
    assert isinstance(mdp, IntervalMDP)
    assert repr(mdp) == "IntervalMDP(interval: 4 states, 7 pairs, 8 transitions)"
    succ, lower, upper = row(mdp, 0, 0)
    assert succ == [1, 2]
    np.testing.assert_array_equal(lower, np.maximum(sets.lower[:2], TINY))
    np.testing.assert_array_equal(upper, sets.upper[:2])
    assert row(mdp, 0, 1)[0] == [0]
    assert row(mdp, 0, 1)[1:] == (1.0, 1.0)  # the only successor seen has all the mass


def test_pairs_never_visited_lead_to_an_absorbing_state():
    mdp = as_interval_mdp(counted())
    assert [row(mdp, s, a)[0] for s, a in [(1, 1), (2, 0), (2, 1), (3, 0)]] == [[3]] * 4
    assert mdp.labels["unknown"].tolist() == [3]
    assert mdp.actions == ["a0", "a1", "a0", "a1", "a0", "a1", "none"]
    assert any(note.startswith("3 pairs were never visited") for note in mdp.notes)
    np.testing.assert_array_equal(mdp.rewards["steps"][0], [1, 1, 1, 1, 1, 1, 0])


def test_a_point_model_has_the_frequencies():
    mdp = as_interval_mdp(counted(), point=True)
    np.testing.assert_array_equal(row(mdp, 0, 0)[1], [2 / 3, 1 / 3])
    assert mdp.lower is not None
    np.testing.assert_array_equal(mdp.lower, mdp.upper)
    assert any("no guarantee" in note for note in mdp.notes)


def test_lower_ends_of_zero_are_raised_and_said():
    class Wide(gosprl.Confidence):
        delta = 0.1

        def intervals(self, model, rows=None):
            sets = gosprl.sets.kl.KL(0.1).intervals(model)
            return gosprl.Intervals(sets.ptr, sets.succ, 0 * sets.lower, 0 * sets.upper + 1, sets.each, sets.total)

    mdp = as_interval_mdp(counted(), confidence=Wide())
    np.testing.assert_array_equal(row(mdp, 0, 0)[1], [TINY, TINY])
    assert any(note.startswith(f"2 lower ends of 0 were raised to {TINY:g}") for note in mdp.notes)


def test_sets_without_a_distribution_over_the_support_are_refused():
    class Narrow(gosprl.Confidence):
        def intervals(self, model, rows=None):
            sets = gosprl.sets.kl.KL(0.1).intervals(model)
            return gosprl.Intervals(sets.ptr, sets.succ, 0 * sets.lower, 0 * sets.upper, sets.each, sets.total)

    with pytest.raises(InputError, match=r"confidence: the set of \(s, a\) = \(0, 0\) has no distribution"):
        as_interval_mdp(counted(), confidence=Narrow())


def test_the_notes_say_what_is_promised_and_what_is_assumed():
    text = "\n".join(as_interval_mdp(counted(), delta=0.05).notes)
    assert "no successors but those seen" in text
    assert "level: delta = 0.05" in text
    assert "promise: with probability at least 1 - delta = 0.95, and if no successor is missing" in text
    assert gosprl.__version__ in text
    assert "no guarantee" in "\n".join(as_interval_mdp(counted(), confidence=as_family("kl", 0.1, 0.01)).notes)


def test_labels_of_need_and_of_the_user():
    mdp = as_interval_mdp(
        counted(), need=1, labels={"even": lambda s: s % 2 == 0, "mine": [2, 0], "mask": np.array([0, 1, 0]) > 0}
    )
    assert mdp.labels["undersampled"].tolist() == [1, 2]
    assert mdp.labels["even"].tolist() == [0, 2]
    assert mdp.labels["mine"].tolist() == [0, 2]
    assert mdp.labels["mask"].tolist() == [1]
    assert as_interval_mdp(counted(), need=[4, 2, 0]).labels["undersampled"].tolist() == [1]
    assert as_interval_mdp(counted(), need=[[4, 1], [1, 0], [0, 0]]).labels["undersampled"].tolist() == [0]


@pytest.mark.parametrize("name", ["init", "unknown", "two words", 'x"', "1st", "", "é", 3])
def test_names_that_a_format_cannot_carry_are_refused(name):
    with pytest.raises(InputError, match="labels: expected names"):
        as_interval_mdp(counted(), labels={name: [0]})


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="delta"):
        as_interval_mdp(counted(), delta=0)
    with pytest.raises(InputError, match=r"labels.*expected states in 0\.\.2, got 3"):
        as_interval_mdp(counted(), labels={"x": [3]})
    with pytest.raises(InputError, match="need: expected a number, "):
        as_interval_mdp(counted(), need=[1, 2])
    with pytest.raises(InputError, match="model: expected an EmpiricalModel or a TabularMDP, got dict"):
        as_interval_mdp({})
    with pytest.raises(InputError, match="reward_range"):
        as_interval_mdp(counted(), reward_range=(1, 0))


def test_intervals_of_rewards_contain_their_means_and_are_those_of_the_range():
    mdp = as_interval_mdp(counted())
    low, mean, high = mdp.rewards["reward"]
    np.testing.assert_allclose(mean[:3], [1 / 3, 1, 0.5])
    assert np.all(low <= mean)
    assert np.all(mean <= high)
    assert np.all(low >= 0)
    assert np.all(high <= 1)
    assert set(mdp.single_rewards()) == {"steps", "reward_lower", "reward", "reward_upper"}
    wide = as_interval_mdp(counted(), reward_range=(-1, 3)).rewards["reward"]
    assert np.all(wide[2] - wide[0] >= high - low)


def test_rewards_out_of_their_range_have_means_only():
    mdp = as_interval_mdp(counted(), reward_range=(0, 0.5))
    assert set(mdp.single_rewards()) == {"steps", "reward"}
    assert any("not in reward_range" in note for note in mdp.notes)


def test_endings_resets_and_labels_of_final_copies():
    result = gosprl.collect(gymnasium.make("FrozenLake-v1"), 5, seed=0, max_steps=2000)
    mdp = as_interval_mdp(result.model, labels={"hole": [5], "column": lambda s: s % 4 == 1})
    reset = result.model.states.reset
    assert mdp.initial == reset
    assert mdp.labels["reset"].tolist() == [reset]
    final = result.model.states.final(5)
    assert mdp.labels["hole"].tolist() == [5, final]
    assert final in mdp.labels["column"]
    assert final in mdp.labels["final"]
    assert mdp.actions[mdp.first[final]] == mdp.actions[mdp.first[reset]] == "reset"
    assert mdp.rewards["steps"][0][mdp.first[reset]] == mdp.rewards["steps"][0][mdp.first[final]] == 0
    assert mdp.labels["start"].tolist() == [0]


def test_observations_that_hold_line_breaks_stay_on_their_line(tmp_path):
    collector = gosprl.Collector(actions=1, need=9, seed=0)
    for s, s_next in [("a\n@model", "b\tc é"), ("b\tc é", "a\n@model")] * 3:
        collector.ask(s)
        collector.tell(s, 0, s_next)
    drn.write(collector.model, tmp_path / "x.drn")
    assert "// a?@model\n" in (tmp_path / "x.drn").read_text()
    assert storm(tmp_path / "x.drn").nr_states >= 2


def test_known_dynamics_are_points():
    mdp = gosprl.envs.make("riverswim")
    model = known(mdp, labels={"goal": [5]})
    assert model.point
    np.testing.assert_array_equal(model.lower, mdp.prob)
    assert model.labels["goal"].tolist() == [5]
    with pytest.raises(InputError, match="need"):
        as_interval_mdp(mdp, need=3)


@pytest.mark.parametrize("seed", range(12))
def test_storm_cooperating_gives_our_optimistic_plan(seed):
    one = run(seed)
    assert one.difference <= SAME
    assert one.spread <= 1e-9
    assert one.contains or not one.complete


def test_robust_answers_contain_the_truth_and_narrow_sets_do_not():
    runs = [run(seed, 1.0, (".drn",)) for seed in range(24)]
    assert p_value(sum(not one.contains for one in runs if one.complete), len(runs)) >= FALSE_ALARM
    narrow = [run(seed, 0.01, (".drn",)) for seed in range(120)]  # a third of them fail: fewer could not be told apart
    outside = sum(not one.contains for one in narrow if one.complete)
    assert p_value(outside, len(narrow)) < FALSE_ALARM


def test_endings_cost_no_step_for_storm(tmp_path):
    """Expected steps with resets between: the same as a plan whose resets cost next to nothing."""
    result = gosprl.collect(gymnasium.make("FrozenLake-v1"), 20, seed=1, max_steps=40_000)
    model, goal = result.model, result.model.states.final(15)
    drn.write(model, tmp_path / "lake.drn", labels={"goal": [goal]})
    built = storm(tmp_path / "lake.drn")
    family = as_family("kl", DELTA, 1.0)
    hidden = support(model, family)
    hidden.each[model.certain] = hidden.total[model.certain] = 0
    costs = model.rows.to_dense(model.costs(1e-7))
    ours = gosprl.plan(model, [goal], costs=costs, confidence=Given(hidden), precision=1e-7).values
    formula = 'F "goal" | "unknown"' if "unknown" in built.labeling.get_labels() else 'F "goal"'
    theirs = answer(built, f'R{{"steps"}}min=? [{formula}]', "COOPERATIVE")
    assert theirs == pytest.approx(ours[model.states.reset], rel=SAME)


def test_resets_that_can_be_chosen_have_a_cost(tmp_path):
    lake = gymnasium.make("FrozenLake-v1")
    result = gosprl.collect(lake, 3, seed=0, max_steps=3000, resets="anytime", reset_cost=2.5)
    mdp = as_interval_mdp(result.model, need=3)
    live = [r for r in range(mdp.first[16]) if mdp.actions[r] == "reset"]
    assert len(live) == 16
    assert {mdp.rewards["cost"][0][r] for r in live} == {2.5}
    assert {mdp.rewards["steps"][0][r] for r in live} == {0.0}
    drn.write(mdp, tmp_path / "x.drn")
    assert "2.5 for each reset that is chosen" in (tmp_path / "x.drn").read_text()
    assert "cost" in storm(tmp_path / "x.drn").reward_models


@pytest.mark.parametrize("confidence", ["kl", "bernstein"])
def test_candidates_that_were_not_seen_are_left_out(confidence):
    model = EmpiricalModel.from_transitions(
        [0] * 40, [0] * 40, [1, 2] * 20, states=4, actions=1, successors=lambda s, a: [0, 1, 2, 3]
    )
    mdp = as_interval_mdp(model, confidence=confidence)
    succ, lower, upper = row(mdp, 0, 0)
    assert succ == [1, 2]
    assert lower.sum() <= 1 <= upper.sum()
    assert np.all((lower > 0) & (lower <= 0.5) & (upper >= 0.5))


def test_states_that_are_discovered_are_named_by_their_observation(tmp_path):
    class Walk:
        def reset(self, seed=None, options=None):
            self.x = 0
            return (self.x, "a"), {}

        def step(self, action):
            self.x = max(0, min(3, self.x + 2 * action - 1))
            return (self.x, "a"), 0.0, False, False, {}

    result = gosprl.collect(Walk(), 4, actions=2, seed=0)
    mdp = as_interval_mdp(result.model, labels={"end": lambda seen: seen[0] == 3})
    assert [mdp.names[s] for s in mdp.labels["end"]] == ["(3, 'a')"]
    drn.write(mdp, tmp_path / "x.drn")
    assert answer(storm(tmp_path / "x.drn"), 'R{"steps"}min=? [F "end"]', "ROBUST") == pytest.approx(3, rel=1e-9)
