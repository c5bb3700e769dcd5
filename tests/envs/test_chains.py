"""The chains against rows written by hand, closed forms, and diameters computed by another implementation."""

import json
from pathlib import Path

import numpy as np
import pytest

import gosprl
from gosprl.envs.chains import noisy_riverswim, riverswim, toy3, wheel
from gosprl.errors import InputError
from gosprl.mdp.tabular import TabularMDP

DOMAINS = json.loads((Path(__file__).parents[1] / "data" / "domains.json").read_text())["domains"]


def row(mdp: TabularMDP, s: int, a: int) -> dict[int, float]:
    states, probabilities = mdp.p(s, a)
    return {int(s_next): pytest.approx(p, abs=1e-12) for s_next, p in zip(states, probabilities, strict=True)}


def test_riverswim_rows():
    mdp = riverswim(4)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.start) == (4, 2, 8, 0)
    assert [row(mdp, s, 0) for s in range(4)] == [{0: 1}, {0: 1}, {1: 1}, {2: 1}]
    assert row(mdp, 0, 1) == {0: 0.4, 1: 0.6}
    assert row(mdp, 1, 1) == {0: 0.05, 1: 0.6, 2: 0.35}
    assert row(mdp, 2, 1) == {1: 0.05, 2: 0.6, 3: 0.35}
    assert row(mdp, 3, 1) == {2: 0.4, 3: 0.6}


def test_riverswim_has_the_usual_rewards():
    mdp = riverswim(4)
    assert mdp.rows.to_dense(mdp.rewards).tolist() == [[0.005, 0], [0, 0], [0, 0], [0, 1]]
    assert mdp.noise == "none"
    assert noisy_riverswim(4).rewards is None


@pytest.mark.parametrize("strategy", ["guarded", "gosprl", "random"])
def test_rewards_of_riverswim_leave_collecting_as_it_is(strategy):
    """Rewards use no random number and affect no decision: the run is that of the chain without rewards."""
    paid = riverswim(6)
    free = TabularMDP(paid.dense(), paid.start)
    results = [gosprl.collect(mdp, 10, strategy=strategy, seed=5) for mdp in (paid, free)]
    assert results[0].steps == results[1].steps
    for one, other in zip(*(result.model.transitions() for result in results), strict=True):
        np.testing.assert_array_equal(one, other)
    assert results[0].model.reward_sum.any()
    assert not results[1].model.reward_sum.any()


def test_the_shortest_riverswim_has_two_ends_only():
    mdp = riverswim(2)
    assert row(mdp, 0, 1) == {0: 0.4, 1: 0.6}
    assert row(mdp, 1, 1) == {0: 0.4, 1: 0.6}


@pytest.mark.parametrize("states", [6, 12, 36])
def test_riverswim_diameters(states):
    mdp, known = riverswim(states), DOMAINS[f"riverswim{states}"]
    assert (mdp.num_states, mdp.num_actions, mdp.start) == (known["states"], known["actions"], known["start"])
    np.testing.assert_allclose(mdp.ssp_diameters(), known["D_s"], atol=1e-6)


def test_riverswim_table_1_of_the_paper():
    diameters = riverswim(6).ssp_diameters()
    assert 12 * 10 * diameters.max() == pytest.approx(1766.7, abs=0.05)
    assert 2 * 10 * diameters.sum() == pytest.approx(958.7, abs=0.05)


def test_noisy_riverswim_is_riverswim_but_for_every_sixth_state():
    noisy, plain = noisy_riverswim(15).dense(), riverswim(15).dense()
    for s in range(15):
        expected = np.full((2, 15), 1 / 15) if s in (2, 8, 14) else plain[s]
        np.testing.assert_allclose(noisy[s], expected, atol=1e-12)


def test_noisy_riverswim_by_default():
    mdp = noisy_riverswim()
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.start) == (36, 2, 72, 0)
    assert mdp.is_communicating()


def test_wheel_rows():
    mdp = wheel(4)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.start) == (4, 2, 8, 0)
    assert row(mdp, 0, 0) == {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}
    assert row(mdp, 0, 1) == {1: 1}
    assert [row(mdp, s, 0) for s in (1, 2, 3)] == [{1: 0.1, 2: 0.9}, {2: 0.1, 3: 0.9}, {1: 0.9, 3: 0.1}]
    assert [row(mdp, s, 1) for s in (1, 2, 3)] == [{0: 0.9, s: 0.1} for s in (1, 2, 3)]


def test_wheel_closed_forms():
    mdp = wheel()
    assert mdp.num_states == 30
    times = mdp.hitting_times()
    np.testing.assert_allclose(times[1:, 0], 1 / 0.9)  # back to the hub
    assert times[0, 1] == pytest.approx(1)
    assert times[4, 5] == pytest.approx(1 / 0.9)  # the next one clockwise


def test_toy3_has_four_pairs():
    mdp = toy3(0.25)
    assert (mdp.num_states, mdp.num_actions, len(mdp.rows), mdp.start) == (3, 2, 4, 0)
    assert [mdp.rows.pair(r) for r in range(4)] == [(0, 0), (1, 0), (2, 0), (2, 1)]
    assert row(mdp, 0, 0) == {1: 0.25, 2: 0.75}
    assert row(mdp, 1, 0) == {0: 1}
    assert row(mdp, 2, 0) == {0: 0.75, 1: 0.25}
    assert row(mdp, 2, 1) == {2: 1}


@pytest.mark.parametrize("nu", [0.5, 0.1, 0.001])
def test_toy3_takes_one_over_nu_steps_to_state_1(nu):
    times = toy3(nu).hitting_times()
    assert times[0, 1] == pytest.approx(1 / nu)
    assert times[2, 1] == pytest.approx(1 / nu)


@pytest.mark.parametrize("nu", [0.0, 1.0, -0.1, "0.1"])
def test_toy3_rejects(nu):
    with pytest.raises(InputError, match=r"^nu: expected a number strictly between 0 and 1"):
        toy3(nu)


@pytest.mark.parametrize(("build", "least"), [(riverswim, 2), (noisy_riverswim, 3), (wheel, 2)])
@pytest.mark.parametrize("states", [0, -1, 2.5, True, "6"])
def test_sizes_are_checked(build, least, states):
    with pytest.raises(InputError, match=rf"^states: expected a whole number >= {least}, got"):
        build(states)
