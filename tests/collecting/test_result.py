"""Result: what a run brought home, how close it came to the limit; snapshots, printing and pickling."""

import gc
import pickle
import weakref

import gymnasium
import numpy as np
import pytest
from scipy.optimize import linprog
from walked import OPTIONS, RIVER, Drawn, by_hand, table_collector

import gosprl
from gosprl import Collector, EmpiricalModel, TabularMDP
from gosprl.envs import make
from gosprl.strategies import Guarded

RING = TabularMDP(  # certain: to the next cell, or stay
    (np.repeat(np.arange(7), 2), np.tile([0, 1], 7), np.ravel([[(s + 1) % 7, s] for s in range(7)]), np.ones(14))
)


def told(mdp, need, seed=0, **options):
    """A run by ask and tell: nobody says what the true dynamics are."""
    collector, s = table_collector(mdp.num_states, mdp.num_actions, need, seed=seed, **options), mdp.start
    rng = np.random.default_rng(seed)
    while not collector.done:
        a = collector.ask(s)
        succ, p = mdp.p(s, a)
        s_next = int(rng.choice(succ, p=p))
        collector.tell(s, a, s_next)
        s = s_next
    return collector.result()


# What a run brought home


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("need", [3, np.arange(6)], ids=["pairs", "states"])
def test_a_result_is_that_of_its_walk(options, need):
    _, log = by_hand(RIVER, need, 7, **OPTIONS[options])
    result = gosprl.collect(RIVER, need, seed=7, **OPTIONS[options])
    N, curve = np.zeros((6, 2), dtype=int), []
    for t in range(len(log) + 1):
        if t:
            N[log[t - 1][:2]] += 1
        met = np.all(N >= 3, axis=1) if np.ndim(need) == 0 else N.sum(axis=1) >= need
        if not curve or met.mean() != curve[-1][1]:
            curve.append((t, met.mean()))
    assert result.met
    assert result.stop == "met"
    assert result.steps == len(log)
    assert result.counts.dtype == np.int64
    assert result.counts.tolist() == N.tolist()
    assert result.unmet.tolist() == []
    assert result.curve["step"].tolist() == [step for step, _ in curve]
    assert result.curve["proportion"] == pytest.approx([met for _, met in curve], abs=1e-12)
    assert (np.diff(result.curve["proportion"]) > 0).all()
    assert result.curve[-1].tolist() == (result.steps, 1.0)
    triples, number = np.unique(log, axis=0, return_counts=True)
    assert np.column_stack(result.model.transitions()).tolist() == np.column_stack([triples, number]).tolist()


def test_what_is_unmet():
    for need in (4, np.arange(6), [[0, 3]] * 6):
        result = gosprl.collect(RIVER, need, seed=0, max_steps=20)
        N, b = result.counts, np.asarray(need)
        if b.ndim == 1:
            expected = [(s, -1, b[s], N[s].sum()) for s in range(6) if N[s].sum() < b[s]]
        else:
            b = np.broadcast_to(b, (6, 2))
            expected = [(s, a, b[s, a], N[s, a]) for s in range(6) for a in range(2) if N[s, a] < b[s, a]]
        assert result.unmet.dtype.names == ("state", "action", "needed", "have")
        assert result.unmet.tolist() == expected
        assert (result.met, result.stop, result.steps) == (False, "max_steps", 20)
        assert result.curve["proportion"][-1] < 1


def test_other_fields():
    need = np.zeros((6, 2), dtype=int)
    need[[0, 0, 4], [0, 1, 1]] = 2
    result = gosprl.collect(RIVER, need, seed=11, delta=0.05)
    assert (result.states, result.pairs, result.seed, result.resets) == (2, 3, 11, 0)
    assert str(result.guarantee) == "delta=0.05"
    assert result.strategy == repr(Guarded(delta=0.05))
    assert result.unreachable == {}
    assert list(result.model.states) == list(range(6))
    assert 1 <= result.attempts <= result.steps


def test_repr_says_what_happened():
    run = gosprl.collect(RIVER, 400, seed=3, strategy="gosprl", scale=0.1, max_steps=1500)
    lines = repr(run).splitlines()
    table = {line.split()[0]: line for line in lines[1:]}
    missing = 12 * 400 - np.minimum(run.counts, 400).sum()
    assert lines[0] == "Result"
    assert table["met"].split(maxsplit=1)[1] == f"False (6 states, 12 pairs, {missing} samples missing)"
    assert table["stop"].split()[1] == "max_steps"
    assert table["steps"].split()[1] == "1,500"
    assert table["guarantee"].endswith("heuristic: scale 0.1")
    assert table["seed"].split()[1] == "3"
    assert max(map(len, lines)) < 400


def test_what_candidates_never_seen_may_have():
    """Level 0.1 over 6 candidates: of 0 they are [0, 1, 2], of 1 and 2 one or two."""
    possible = [[0, 1, 2], [0, 1], [2]]
    model = EmpiricalModel(3, 1, lambda s, a: possible[s])
    collector = Collector(need=5, seed=0, model=model)
    assert collector.result().unseen == 1
    collector.observe(2, 0, 2)
    assert collector.result().unseen == 0  # nothing else is possible there
    for s_next in [0] * 40 + [1] * 10:
        collector.observe(0, 0, s_next)
    budget = np.log(6 / 0.1) + 0.5 * np.log(50 * np.pi + 1)
    assert collector.result().unseen == pytest.approx(1 - np.exp(-budget / 50))
    collector.observe(0, 0, 2)
    assert collector.result().unseen == 0
    for n in (1, 2, 3):
        collector.observe(1, 0, 1)
        budget = np.log(6 / 0.1) + 0.5 * np.log(n * np.pi + 1)
        assert collector.result().unseen == pytest.approx(1 - np.exp(-budget / n))


# How close it came


@pytest.mark.parametrize("need", [10, [0, 0, 5, 0, 0, 3], np.arange(12).reshape(6, 2)])
def test_the_limit_of_the_true_dynamics(need):
    result = gosprl.collect(RIVER, need, seed=0)
    assert result.limit == gosprl.fluid_limit(RIVER, need)
    assert result.ratio == result.steps / result.limit
    assert result.limit_of == "the true dynamics"


def test_the_limit_of_what_was_learnt_is_that_of_the_truth_if_all_is_certain():
    for need in (3, np.arange(14).reshape(7, 2)):
        result = told(RING, need)
        assert result.limit == pytest.approx(gosprl.fluid_limit(RING, need))
        assert result.limit_of == "the learnt model, an estimate"


def test_the_limit_of_what_was_learnt_approaches_that_of_the_truth():
    """300 samples of every pair: the limit is as precise as such frequencies, a few per cent."""
    for seed in range(3):
        assert told(RIVER, 300, seed).limit == pytest.approx(gosprl.fluid_limit(RIVER, 300), rel=0.05)


@pytest.mark.parametrize("slippery", [False, True])
def test_resets_cost_nothing_and_lead_nowhere_else(slippery):
    """Against the plain program over what was seen: 5 visits at least of each action and of the reset, which is free.

    The first of the resets is the start.
    """
    result = gosprl.collect(gymnasium.make("FrozenLake-v1", is_slippery=slippery), 5, seed=0)
    assert result.met
    assert result.resets > 0
    model = result.model
    seen, S, reset = {}, model.rows.num_states, model.states.reset
    for s, a, s_next, n in zip(*model.transitions(resets=True), strict=True):
        seen.setdefault((int(s), int(a)), np.zeros(S))[s_next] += n
    ends = [bool(model.terminal[s]) for s, _ in seen]
    least = [4 if s == reset else 0 if model.terminal[s] else 5 for s, _ in seen]
    flow = np.array([np.eye(S)[s] - n / n.sum() for (s, _), n in seen.items()]).T
    plain = linprog(
        np.append(np.where(ends, 0.0, 1.0), np.zeros(S)),
        A_eq=np.hstack([flow, np.eye(S)]),
        b_eq=np.eye(S)[0],
        bounds=[(low, None) for low in least] + [(0, None)] * S,
    )
    assert result.limit == pytest.approx(plain.fun, rel=1e-6)


def test_no_ratio_where_it_means_nothing():
    assert gosprl.collect(RIVER, 10, seed=0, max_steps=20).ratio is None
    assert gosprl.collect(RIVER, 0, seed=0).ratio is None
    unbegun = table_collector(6, 2, 3).result()
    assert (unbegun.limit, unbegun.ratio, unbegun.limit_of) == (None, None, "none: the run did not begin")


def test_no_limit_where_the_program_cannot_be_solved():
    rare = TabularMDP(np.array([[[0, 1 - 1e-10, 1e-10]], [[0.5, 0.5, 0]], [[1, 0, 0]]]))
    result = gosprl.collect(rare, [[5], [5], [0]], seed=0)
    assert result.met
    assert result.limit is None
    assert "limit      none: P has probabilities of 1e-10" in repr(result)


def test_what_was_there_before_is_not_counted():
    first = gosprl.collect(RIVER, 50, seed=0)
    missing = np.maximum(51 - first.counts, 0)
    result = Collector(need=51, model=first.model, seed=1).run(RIVER)
    assert result.limit == gosprl.fluid_limit(RIVER, missing)


def test_it_prints_how_close_it_came_unless_that_would_take_long():
    result = gosprl.collect(RIVER, 10, seed=0)
    assert f"limit      230.6, for the true dynamics: {result.ratio:.2f} times that" in repr(result)
    assert "limit" not in repr(gosprl.collect(make("open_grid", rows=15, columns=15), 1, seed=0))


def test_results_and_errors_travel_between_processes():
    result = pickle.loads(pickle.dumps(gosprl.collect(RIVER, 3, seed=0)))
    assert result.limit == gosprl.fluid_limit(RIVER, 3)

    def failing(model):
        if model.visits.sum() > 5:
            raise ArithmeticError("no more")
        return 3

    with pytest.raises(gosprl.CollectionError, match="no more") as caught:
        gosprl.collect(RIVER, failing, seed=0)
    error = gosprl.CollectionError("gone", result)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "gone"
    assert again.result.steps == result.steps
    assert caught.value.result.stop == "failed"


# Snapshots


def parts(result):
    """All that a result says, as plain numbers."""
    model = result.model
    arrays = [result.counts, result.unmet, result.curve, *model.transitions(), *model.stored(), model.visits]
    arrays += [model.reward_sum, model.reward_sq, model.terminal, model.is_discovered, model.enabled, *result._need]
    numbers = (result.met, result.steps, result.attempts, result.stop, result.resets, result.unseen, result.states)
    return [array.tolist() for array in arrays], numbers, list(model.discovered), dict(result.work), result.found


@pytest.mark.parametrize("options", OPTIONS)
def test_a_result_is_a_snapshot_of_a_run(options):
    collector = table_collector(6, 2, lambda model: 3 + model.visits.sum() // 5, seed=0, **OPTIONS[options])
    first = collector.run(RIVER, max_steps=30)
    before, text, limit = parts(first), repr(first), first.limit
    collector.run(max_steps=300)
    collector.observe(5, 1, 5, reward=3.0)
    assert parts(first) == before
    assert (repr(first), first.limit) == (text, limit)
    second = collector.result()
    assert second.steps == 331
    assert second.counts.sum() > first.counts.sum()
    assert second.model.visits.sum() == 331 > first.model.visits.sum() == 30


def test_a_result_is_a_snapshot_of_a_loop():
    """Episodes: terminal states and discovered ones are those of the moment."""
    collector = Collector(4, 2, 3, seed=0, threshold=5.0)
    collector.tell(0, collector.ask(0), 1)
    first = collector.result()
    before = parts(first)
    collector.tell(1, collector.ask(1), 3, terminated=True)
    collector.tell(2, collector.ask(2), 0, reward=9.0)
    second = collector.result()
    assert parts(first) == before
    assert (first.stop, first.found, first.model.terminal.tolist()) == ("running", None, [False] * 4 + [True])
    assert (second.stop, second.model.terminal.tolist()) == ("found", [False] * 4 + [True, True])
    assert (second.resets, second.model.discovered) == (1, [0, 1, 2])


def test_what_is_done_to_a_result_does_not_change_the_run():
    collector = table_collector(6, 2, 3, seed=0)
    first = collector.run(RIVER, max_steps=30)
    first.counts[:], first.unmet["needed"] = 99, 99
    first.model.update(5, 1, 5)
    whole = collector.run()
    plain = gosprl.collect(RIVER, 3, seed=0)
    assert whole.counts.tolist() == plain.counts.tolist()
    assert np.array_equal(whole.model.visits, plain.model.visits)


# Between processes


def next_door(s, a):
    return range(max(0, s - 1), min(6, s + 2))


def unnamed():
    """Runs with functions that cannot be pickled."""
    yield "need", gosprl.collect(RIVER, lambda model: 3, seed=0)
    yield "successors", gosprl.collect(RIVER, 3, seed=0, successors=lambda s, a: next_door(s, a))
    yield "goals", gosprl.collect(RIVER, 3, seed=0, strategy="gosprl", goals=lambda under, history, rng: under)
    yield "costs", gosprl.collect(RIVER, 3, seed=0, strategy="gosprl", costs=lambda model: np.full(6, 1.5))
    yield "environment", gosprl.collect(gymnasium.make("FrozenLake-v1"), 1, seed=0)
    yield "system", gosprl.collect(Drawn(RIVER), 3, seed=0)
    yield "given up", gosprl.collect(Drawn(TabularMDP(([0, 1], [0, 0], [0, 0], [1, 1]))), 3, seed=0, reach=3.0)
    yield "found", gosprl.collect(RIVER, 30, seed=0, threshold=0.001)


@pytest.mark.parametrize("result", [pytest.param(result, id=kind) for kind, result in unnamed()])
def test_results_travel_whatever_the_run_was_made_of(result):
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == repr(result)
    assert parts(again) == parts(result)
    assert (again.unreachable, again.guarantee, again.strategy) == (
        result.unreachable,
        result.guarantee,
        result.strategy,
    )
    assert (again.limit, again.limit_of, again.ratio) == (result.limit, result.limit_of, result.ratio)


def test_a_result_keeps_no_planner_alive():
    planners, results = [], []
    for strategy in ("guarded", "gosprl", "practical", "random", "zero_one_ucrl"):
        collector = table_collector(6, 2, 3, seed=0, strategy=strategy)
        results.append(collector.run(RIVER))
        planners.append(weakref.ref(collector.planner))
    del collector
    gc.collect()
    assert [planner() for planner in planners] == [None] * 5
    assert all(result.met for result in results)
    assert "Guarded(" in repr(results[0])


def test_what_planning_took_is_kept_as_numbers():
    result = gosprl.collect(RIVER, 30, seed=0)
    work = result.work
    assert work["practical steps"] + work["certified steps"] == result.steps
    assert result.steps <= work["bound"]
    assert work["plans"] > 0
    assert gosprl.collect(RIVER, 3, seed=0, strategy="random").work == {}
