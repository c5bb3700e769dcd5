"""Plans around the walk against value iteration over all states, written in numpy; regions; many states."""

import numpy as np
import pytest
from priors import learnt_from, need_of, planned

import gosprl
from gosprl._kernels import ANY_STEP, BEFORE, DEAD, KNOWN, POPULAR, SELF, SIBLING, STEP, UNKNOWN
from gosprl._kernels.steps import CODES
from gosprl.envs import make
from gosprl.planning.prior import Prior


def swept(prior):
    """States swept by all plans so far."""
    from gosprl._kernels.local import SWEPT

    return int(prior._around.scalars[SWEPT])


def expected_law(prior, s, row, v):
    """The law [S] of a row, and the mass [4] whose value is each of the plan's means, by the head of the module."""
    learnt, model, parts = prior._learnt, prior._model, prior.weights
    S, a, A = len(v), int(model.rows.action[row]), model.num_actions
    ptr, succ, number, _ = model.stored()
    law = np.zeros(S)
    np.add.at(law, succ[ptr[row] : ptr[row + 1]], number[ptr[row] : ptr[row + 1]])
    N = law.sum()
    if learnt.jumps[row] and learnt.jump_concentration[0] >= 1:
        c = learnt.jump_concentration[0]
        return law / (N + c), np.append(np.zeros(3), c / (N + c))
    c = learnt.concentration[a] * learnt.factor[learnt.kind[row]] if N else 1.0
    base = np.zeros(S)
    base[s] += parts[SELF]
    for expert, kind in ((STEP, a), (ANY_STEP, A)):
        to, times = (s + learnt.common[kind]) & CODES, learnt.times[kind] * 1.0  # codes are numbers modulo a power of 2
        times[(to < 0) | (to >= S)] = 0
        if times.sum():
            np.add.at(base, to[times > 0], parts[expert] * times[times > 0] / times.sum())
        else:
            base[s] += np.nan
    near = {int(x) for r in range(model.rows.ptr[s], model.rows.ptr[s + 1]) for x in succ[ptr[r] : ptr[r + 1]]}
    at = learnt.head[s]
    while at >= 0:
        near.add(int(learnt.before[at]))
        at = learnt.next[at]
    near -= {s}
    best = min(near, key=lambda x: v[x]) if near else s
    base[best] += parts[SIBLING] + parts[BEFORE]
    rest = c * np.append(parts[[POPULAR, KNOWN, UNKNOWN]], 0.0) / (N + c)
    return (law + c * base) / (N + c), rest


def whole_values(prior, goals):
    """Values [S] of shortest paths by value iteration over all states; the mean values are the plan's."""
    model, S = prior._model, len(goals)
    v = np.zeros(S)
    for _ in range(3000):
        new = np.full(S, np.inf)
        for row, s in enumerate(model.rows.state):
            law, rest = expected_law(prior, s, row, v)
            stays = law[s]
            q = (1 + law @ v - stays * v[s] + rest @ prior._means) / (1 - stays)
            new[s] = min(new[s], q)
        new[goals] = 0
        if np.abs(new - v).max() < 1e-7:
            break
        v = new
    return v


def walked(mdp, steps, seed):
    """A prior that learnt from a random walk."""
    rng, s, transitions = np.random.default_rng(seed), 0, []
    for _ in range(steps):
        a = int(rng.integers(mdp.rows.num_actions))
        succ, p = mdp.p(s, a)
        s_next = int(rng.choice(succ, p=p))
        transitions.append((s, a, s_next))
        s = s_next
    return learnt_from(transitions, states=mdp.rows.num_states, actions=mdp.rows.num_actions)


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_value_iteration_over_all_states(seed):
    """An open grid walked at random: values where the walk is are those of all states together, within 5 percent."""
    mdp = make("open_grid", rows=5, columns=5)
    prior = walked(mdp, 400, seed)
    for s in (0, 7, 24):
        goals = np.isin(np.arange(25), [12, 20])
        planned(prior, goals, s)
        value = planned(prior, goals, s)[1][s]  # again: converged
        assert value == pytest.approx(whole_values(prior, goals)[s], rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_jump_are_planned_to_lead_anywhere(seed):
    """A river with states from where the next one is any: values of all states together, within 5 percent."""
    mdp = make("noisy_riverswim36")
    prior = walked(mdp, 600, seed)
    state = mdp.rows.state[prior._learnt.jumps]
    assert len(state) > 0
    assert (state % 6 == 2).all()  # the noisy ones
    assert prior._learnt.jump_concentration[0] >= 1
    goals = np.isin(np.arange(36), [25, 34])
    for s in (0, 7, 29):
        planned(prior, goals, s)
        value = planned(prior, goals, s)[1][s]  # again: converged
        assert value == pytest.approx(whole_values(prior, goals)[s], rel=0.05)


def test_a_region_has_every_goal_that_is_as_near():
    """Goals at random on an open grid with known rows: the nearest one in steps is in the region."""
    n = 12
    mdp = make("open_grid", rows=n, columns=n, slip=0)
    transitions = [(s, a, int(mdp.p(s, a)[0][0])) for s in range(n * n) for a in range(4)] * 3
    prior, rng = learnt_from(transitions, states=n * n, actions=4), np.random.default_rng(0)
    for _ in range(30):
        s, g = rng.choice(n * n, 2, replace=False)
        goals = np.isin(np.arange(n * n), [g, *rng.choice(n * n, 2)])
        goals[s] = False
        policy, v = planned(prior, goals, s)
        distance = min(abs(s // n - x // n) + abs(s % n - x % n) for x in np.flatnonzero(goals))
        assert distance <= v[s] <= 1.3 * distance + 1
        assert policy[s] >= 0


def test_rows_outside_of_the_region_are_cleared():
    prior = learnt_from([(s, 0, s + 1) for s in range(59)] * 3, states=60, actions=2)
    planned(prior, np.arange(60) == 5, 2)
    policy, v = planned(prior, np.arange(60) == 55, 52)
    assert policy[2] == -1
    assert v[2] == DEAD
    assert policy[52] >= 0


def test_near_goals_take_the_same_work_at_any_size():
    work = []
    for n in (200, 20_000):
        prior = learnt_from([(s, 0, s + 1) for s in range(n - 1)], each=False, states=n, actions=2)
        before = swept(prior)
        planned(prior, np.arange(n) == n // 2 + 3, n // 2)
        work.append(swept(prior) - before)
    assert work[0] == work[1] < 300


def test_a_goal_that_was_met_attracts_no_longer():
    prior = learnt_from([(s, 0, s + 1) for s in range(59)] * 9 + [(s, 1, s - 1) for s in range(1, 60)] * 9, states=60)
    at = np.arange(60)
    assert planned(prior, np.isin(at, [28, 45]), 30)[0][30] == 61
    assert planned(prior, at == 45, 30)[0][30] == 60


def test_one_state_and_no_way_to_a_goal():
    prior = Prior(gosprl.EmpiricalModel(2, 1))
    prior.update()
    assert prior.plan(0, need_of([False, True]), np.ones(2), None, 0.0)[0][0] in (-1, 0)
    result = gosprl.collect(gosprl.TabularMDP(np.ones((1, 2, 1))), 3, seed=0, prior=True)
    assert result.met


@pytest.mark.parametrize("pairs", [0, 1])
def test_needs_of_few_pairs(pairs):
    mdp = make("open_grid", rows=40, columns=40)
    need = np.zeros((1600, 4), dtype=np.int64)
    need[1599, :pairs] = 2
    result = gosprl.collect(mdp, need, seed=0, prior=True)
    assert result.met
    assert result.steps < 400


def test_many_states():
    """At 1,600 states without prices: fewer steps than without the prior, and the same steps again."""
    mdp = make("open_grid", rows=40, columns=40)
    runs = [gosprl.collect(mdp, 1, seed=1, prior=prior).steps for prior in (True, True, False)]
    assert runs[0] == runs[1]
    assert runs[0] < 1.45 * 6400 < 1.1 * runs[2]
