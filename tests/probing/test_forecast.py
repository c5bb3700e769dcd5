"""Forecasts: exact where the probe collected everything, near the fluid limit where it could not, honest elsewhere."""

import math

import numpy as np
import pytest

import gosprl
from evidence.probed import TEN, Trap
from evidence.systems import SYSTEMS
from gosprl.probing import forecast as module
from gosprl.probing.findings import Size
from gosprl.probing.walk import Sample


@pytest.mark.parametrize("name", ["FrozenLake", "random starts", "hidden ring"])
def test_exact_for_the_same_seed(name):
    env, options = TEN[name]()
    found = gosprl.probe(env, need=3, seed=4, **options)
    env, options = TEN[name]()
    result = gosprl.collect(env, 3, seed=4, **options)
    assert found.met
    assert found.forecast.steps == result.steps
    assert found.forecast.low < result.steps < found.forecast.high
    assert (found.forecast.states, found.forecast.pairs) == (result.states, result.pairs)
    assert found.forecast.guarantee == str(result.guarantee)
    assert "as `collect` does with this seed" in found.forecast.how


@pytest.mark.parametrize("domain", ["four_room43", "riverswim6", "wheel30"])
def test_large_needs_are_near_the_fluid_limit_of_the_true_dynamics(domain):
    """The probe has a fiftieth of the samples; the limit is a linear program over the true probabilities."""
    mdp = gosprl.envs.make(domain)
    need = 2000
    limit = gosprl.fluid_limit(mdp, need)
    found = gosprl.probe(mdp, need=need, seed=0, max_steps=int(limit / 50))
    assert not found.met
    assert found.forecast.steps == pytest.approx(limit, rel=0.15)
    assert found.forecast.low <= limit * 1.1 <= found.forecast.high
    assert (found.forecast.states, found.forecast.pairs) == (mdp.num_states, len(mdp.rows))


@pytest.mark.parametrize("name", ["Taxi, rainy", "MultiDiscrete plane", "MiniGrid LavaGap"])
def test_a_quarter_of_the_steps_is_enough_for_a_factor_of_one_and_a_half(name):
    env, options = SYSTEMS[name]()
    steps = gosprl.collect(env, 10, seed=1, **options).steps
    env, options = SYSTEMS[name]()
    found = gosprl.probe(env, need=10, seed=0, max_steps=steps // 4, **options)
    assert not found.met
    assert 1 / 1.5 < found.forecast.steps / steps < 1.5


def test_needs_of_states_with_any_action():
    """Every third state: the limit is a linear program over the true probabilities."""
    mdp = gosprl.envs.make("four_room43")
    need = np.where(np.arange(43) % 3 == 0, 900, 0)
    limit = gosprl.fluid_limit(mdp, need)
    found = gosprl.probe(mdp, need=need, seed=0, max_steps=int(limit / 20))
    assert not found.met
    assert found.forecast.low <= limit <= found.forecast.high
    assert found.forecast.steps == pytest.approx(limit, rel=1)
    assert found.forecast.steps > limit / 2


def test_what_cannot_be_reached_ends_the_forecast_where_collect_ends():
    one_way = gosprl.TabularMDP(np.array([[[0, 1, 0]], [[0, 0.5, 0.5]], [[0, 0.5, 0.5]]]), name="one way")
    result = gosprl.collect(one_way, 3, seed=0)
    found = gosprl.probe(one_way, need=3, seed=0)
    assert result.stop == found.stop == "unreachable"
    assert found.forecast.steps == result.steps


def test_a_trap_has_no_forecast():
    found = gosprl.probe(Trap(), seed=0, max_steps=3000)
    assert math.isinf(found.forecast.steps)
    (trap,) = found.classes.traps
    assert trap.names == ("5",)
    assert "would not end" in repr(found)
    left = gosprl.probe(Trap(), seed=0, max_steps=3000, resets="anytime")
    assert left.met
    assert math.isfinite(left.forecast.steps)


def test_growth_solves_its_equation():
    """T = T0 S(T) / S(N), with S(n) = S(N) (n / N)^beta."""

    class Walked:
        class watched:
            log = range(1000)

        samples = (Sample(0, 0, 1, 0, 0), Sample(500, 1, 50, 0, 0), Sample(1000, 2, 70, 0, 0))

    size = Size(70, 2, 140, 100, 5, 100, None, 1.0)
    T0 = 2500.0
    factor = module._growth(Walked, size, T0)
    beta = math.log2(70 / 50)
    T = T0 * factor
    assert 70 * (T / 1000) ** beta / 70 == pytest.approx(factor)
    bounded = Size(70, 2, 140, 100, 5, 100, 77, 1.0)
    assert module._growth(Walked, bounded, T0) == pytest.approx(1.1)
    still = Size(70, 2, 140, 100, 0, 100, None, 1.0)
    assert module._growth(Walked, still, T0) == 1.0


def test_without_a_fluid_limit_by_the_decline_of_what_is_missing(monkeypatch):
    """Nearly every step brings a needed sample: evenly, the rest takes a step for each."""
    monkeypatch.setattr(module, "MOST_PAIRS", 0)
    found = gosprl.probe(gosprl.envs.make("four_room43"), need=100, seed=0, max_steps=5000)
    assert "missing samples" in found.forecast.how
    assert found.forecast.low * math.exp(0.1) == pytest.approx(100 * 172, rel=0.05)
    assert found.forecast.low < found.forecast.steps < found.forecast.high


@pytest.mark.parametrize(
    ("half", "now", "low", "high"),
    [
        (200, 100, 1000 + 500, 1000 + 500 * math.log(101) / math.log(2)),
        (900, 899, 1000 + 500 * math.log(900) / math.log(900 / 899), 1000 + 500 * 899),
    ],
)
def test_decline(half, now, low, high):
    class Walked:
        samples = (Sample(0, 0, 1, 1000, 0), Sample(500, 1, 5, half, 0), Sample(1000, 2, 5, now, 0))

    low, high = sorted((low, high))
    estimate = 1000 + math.sqrt((low - 1000) * (high - 1000))
    assert module._decline(Walked, 1000)[:3] == pytest.approx((low, estimate, high))


def test_no_decline():
    class Walked:
        samples = (Sample(0, 0, 1, 10, 0), Sample(500, 1, 5, 10, 0), Sample(1000, 2, 5, 10, 0))

    assert module._decline(Walked, 1000)[:3] == (1000, math.inf, math.inf)


def test_what_is_not_markov_is_not_predicted_by_a_model():
    env, options = TEN["hidden ring"]()
    found = gosprl.probe(env, need=1000, seed=0, max_steps=2000, **options)
    assert found.aliasing.found
    assert "missing samples" in found.forecast.how
