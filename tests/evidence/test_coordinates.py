"""The systems of the evidence of coordinates."""

import gymnasium
import numpy as np
import pytest

from evidence.coordinates import SYSTEMS, Shown, cell, ended, taxi, walked, windy


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_state_has_a_place_of_its_own(name):
    make, places = SYSTEMS[name]
    mdp = make(0)
    assert len(set(places)) == len(places) == mdp.rows.num_states
    assert mdp.is_communicating()


def test_the_wind_by_hand():
    succ, prob = windy().p(36, 1)  # row 3, column 6, to the right: a wind of two in half of all steps
    assert dict(zip(succ.tolist(), prob, strict=True)) == {17: 0.5, 37: 0.5}


def test_an_environment_is_the_mdp_that_it_shows():
    mdp, rng = windy(), np.random.default_rng(0)
    env = Shown(mdp, [f"{s}" for s in range(70)])
    assert env.reset(seed=0) == ("0", {})
    for _ in range(200):
        s, a = env.state, int(rng.integers(4))
        assert int(env.step(a)[0]) in mdp.p(s, a)[0]


def test_places_of_taxi():
    env = gymnasium.make("Taxi-v4").unwrapped
    assert all(taxi(number) == tuple(env.decode(number)) for number in range(500))


def test_runs_and_cells():
    steps = np.array(
        [[walked("four_room43", "places", prior, True, seed) for seed in (0, 1)] for prior in (True, False)]
    )
    assert np.all(steps >= 1)
    with pytest.warns(UserWarning, match="states discovered"):
        assert ended("CliffWalking-v1", "strings", True, 0) >= 1
    assert cell(np.array([1.0, 1.0]), np.array([2.0, 2.0])) == "1.00 ± 0.00 / 2.00 ± 0.00 | 0.50 ± 0.00"
