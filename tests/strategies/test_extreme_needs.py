"""Needs and systems at the edges: nothing, one pair, a million pairs, one state, and numbers of states that mislead."""

import numpy as np
import pytest

import gosprl
from gosprl.envs import make

STRATEGIES = ("guarded", "practical", "gosprl")


def swept(collector):
    """States that the plans with the prior swept so far."""
    from gosprl._kernels.local import SWEPT

    return int(collector.planner.practical._prior._around.scalars[SWEPT])


def walked(mdp, need, **options):
    """(result, collector) of a run with the default strategy."""
    collector = gosprl.Collector(model=gosprl.EmpiricalModel.over(mdp.rows), need=need, seed=0)
    return collector.run(mdp, **options), collector


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n", [1, 50])
def test_a_need_of_nothing_takes_no_step_and_no_plan(strategy, n):
    mdp = make("open_grid", rows=n, columns=n)
    for need in (0, np.zeros((n * n, 4), dtype=np.int64), np.zeros(n * n, dtype=np.int64)):
        result = gosprl.collect(mdp, need, seed=0, strategy=strategy)
        assert result.met
        assert (result.steps, result.work.get("plans", 0), result.work.get("programs", 0)) == (0, 0, 0)


def test_one_pair_of_many_takes_the_work_of_its_way():
    """The pair is 20 steps away, in a grid of 10,000 cells or of 90,000."""
    work = []
    for n in (100, 300):
        need = np.zeros((n * n, 4), dtype=np.int64)
        need[10 * n + 10, 2] = 1
        result, collector = walked(make("open_grid", rows=n, columns=n), need)
        assert result.met
        work.append((result.steps, swept(collector)))
    assert work[1][0] < 100
    assert work[1][1] < 1.2 * work[0][1]


def test_a_million_pairs_take_no_more_work_a_step_than_ten_thousand():
    work = []
    for n in (50, 500):
        result, collector = walked(make("open_grid", rows=n, columns=n), 1, max_steps=3000)
        assert result.steps == 3000
        work.append((result.work["plans"], swept(collector)))
    (plans, states), (more_plans, more_states) = work
    assert more_plans < 1.3 * plans
    assert more_states < 1.5 * states


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("actions", [1, 3])
@pytest.mark.parametrize("told", [None, "successors", "dynamics"])
def test_one_state(strategy, actions, told):
    """Every step is a needed sample, and there is nothing to plan."""
    mdp = gosprl.TabularMDP(np.ones((1, actions, 1)))
    options = {} if told is None else {told: mdp}
    if strategy == "gosprl":
        options["duplicate_start"] = False
    for need in (0, 1, 7):
        result = gosprl.collect(mdp, need, seed=0, strategy=strategy, **options)
        assert result.met
        assert result.steps == actions * need


def renumbered(mdp, order):
    """The same system; its state order[k] has the number k."""
    rows, number = mdp.rows, np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    row = np.repeat(np.arange(len(rows)), np.diff(mdp.ptr))
    parts = (number[rows.state[row]], rows.action[row], number[mdp.succ], mdp.prob)
    return gosprl.TabularMDP(parts, start=int(number[0]), states=len(order), actions=rows.num_actions)


N = 16
CELLS = np.arange(N * N).reshape(N, N)
NUMBERS = {
    "backwards": CELLS[::-1, ::-1],
    "by columns": CELLS.T,
    "the lower half mirrored": np.concatenate([CELLS[: N // 2], CELLS[N // 2 :, ::-1]]),
    "to and fro": np.where(np.arange(N)[:, None] % 2, CELLS[:, ::-1], CELLS),
    "even ones first": np.concatenate([CELLS.ravel()[::2], CELLS.ravel()[1::2]]),
    "bits reversed": np.array([int(f"{s:08b}"[::-1], 2) for s in range(N * N)]),
    "shuffled": np.random.default_rng(0).permutation(N * N),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_mislead_cost_little(name):
    """Against the walk without the prior: steps, and states swept for each; over five seeds."""
    mdp = renumbered(make("open_grid", rows=N, columns=N), NUMBERS[name].ravel())
    steps, plain, states = 0, 0, 0
    for seed in range(5):
        collector = gosprl.Collector(model=gosprl.EmpiricalModel.over(mdp.rows), need=1, seed=seed)
        steps += collector.run(mdp).steps
        states += swept(collector)
        plain += gosprl.collect(mdp, 1, seed=seed, prior=False).steps
    assert steps <= 1.1 * plain
    assert states <= 200 * steps
