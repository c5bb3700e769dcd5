"""The guard of a fleet: T_p <= kappa (Lambda + T_c) before every order, whatever the practical plan and the walkers do.

T counts the steps that were issued, those in flight included; a step is practical if the last attempt is.
"""

import math

import numpy as np
import pytest
from fleet_runs import exponential, walked
from walked import corridor

from evidence.guard import rounds
from gosprl.envs import make
from gosprl.fleet.collector import FleetCollector
from gosprl.strategies import UNLIMITED, Attempt, Guarded, Planner, Strategy
from gosprl.strategies.guarded import PRACTICAL, VALUED_STATES, GuardedPlanner


class IdlePlanner(Planner):
    """A practical plan as bad as can be: always the first action, for ever."""

    def __init__(self, model):
        self.model = model

    def attempt(self, s, t):
        S, R = self.model.rows.num_states, len(self.model.rows)
        return Attempt(self.model.rows.ptr[:-1].copy(), np.zeros(S, dtype=bool), np.full(R, UNLIMITED), UNLIMITED)


class WatchedPlanner(GuardedPlanner):
    """Checks the inequality before every attempt."""

    def attempt(self, s, t):
        answer = super().attempt(s, t)
        account = self.books
        assert account.practical + account.certified == t - 1
        assert account.practical <= account.kappa * (account.credit + account.certified)
        return answer


class Watched(Strategy):
    def __init__(self, kappa, idle, **options):
        self.options, self.idle = Guarded(kappa=kappa, **options), idle

    def begin(self, model, need, rng):
        ours = self.options.begin(model, need, rng)
        practical = IdlePlanner(model.returned) if self.idle else ours.practical
        return WatchedPlanner(self.options, model, need, ours.certified, practical)


def test_walking_far_does_not_raise_the_allowance_of_a_fleet():
    """Two walkers idle to the far end of a corridor; samples are needed in its first cell, and lead beside it."""
    S = VALUED_STATES + 20
    mdp, need = corridor(S), np.zeros(S, dtype=int)
    need[0] = 4
    collector, _ = walked(mdp, need, 2, strategy=Watched(0.05, idle=True, successors=mdp))
    assert collector.result().met
    account = collector.planner.books
    assert account.certified > 500  # the way back was walked
    assert account.credit <= 4 * math.ceil(2 * S * math.log(S * 2 * S / 0.1)) + 4 * account.samples


@pytest.fixture
def watched_orders(monkeypatch):
    """The number of practical orders, after checking the inequality at each."""
    practical = []
    order = FleetCollector._order

    def checked(self, walk, *others):
        issued = self._issued
        order(self, walk, *others)
        planner = self.planner
        if self._issued > issued and isinstance(planner, GuardedPlanner) and planner._mode == PRACTICAL:
            steps, (begun, _) = planner._steps, planner._counted
            made = steps[0] + self.record.accounted - begun
            assert made <= planner.options.kappa * (planner._credit + steps[1])
            practical.append(made)

    monkeypatch.setattr(FleetCollector, "_order", checked)
    return practical


SIMULATIONS = {
    "exponential": {"duration": exponential},
    "lost": {"duration": exponential, "lost": lambda rng, report: rng.random() < 0.02},
    "late": {"duration": lambda rng, report: (rng.pareto(1.5) + 1) / 3},
}


@pytest.mark.parametrize("simulation", SIMULATIONS)
@pytest.mark.parametrize("walkers", [2, 16])
@pytest.mark.parametrize(("idle", "lease"), [(True, 1), (False, 1), (True, 4)])
def test_the_inequality_holds_at_every_order(watched_orders, walkers, simulation, idle, lease):
    for mdp, need, kappa in ((make("riverswim6"), 60, 0.3), (*rounds(6, 2, 20, 12), 0.2)):
        options = {"simulation": SIMULATIONS[simulation], "late": 5, "lease": lease}
        collector, _ = walked(mdp, need, walkers, strategy=Watched(kappa, idle), **options)
        result = collector.result()
        assert result.met
        account = collector.planner.books
        assert account.practical + account.certified == collector.record.accounted >= result.steps
        assert result.steps <= account.bound
    assert watched_orders
