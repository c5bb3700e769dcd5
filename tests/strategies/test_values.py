"""Strategies are values: frozen, shared between runs, threads and processes; the state of a run is in its planner."""

import gc
import multiprocessing
import pickle
import types
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields, replace

import gymnasium
import numpy as np
import pytest
from walked import table_collector

import gosprl
from gosprl import CollectionError, Collector, EmpiricalModel
from gosprl.collecting.engine import Engine
from gosprl.collecting.need import Need
from gosprl.collecting.record import Record
from gosprl.envs import make
from gosprl.planning.average import AveragePlanner
from gosprl.planning.focus import Focus
from gosprl.planning.workspace import Workspace
from gosprl.strategies import STRATEGIES, Gosprl, Guarded, Planner, Practical, Strategy
from gosprl.strategies.gosprl import GosprlPlanner
from gosprl.systems import System

RIVER, ROOM = make("riverswim6"), make("room20")
SHARED = {
    **{name: kind() for name, kind in STRATEGIES.items()},
    "gosprl, full": Gosprl(planning="full", scale=0.1),
    "gosprl, easiest": Gosprl(goals="easiest", confidence="bernstein"),
    "gosprl, costs": Gosprl(costs=np.linspace(1, 3, 6)),
    "gosprl, known": Gosprl(dynamics=RIVER),
    "gosprl, closed": Gosprl(successors=RIVER, reach=1e6),
    "guarded, certified": Guarded(kappa=0.01),
    "guarded, known": Guarded(dynamics=RIVER),
    "guarded, reach": Guarded(reach=30.0, fluid=False),
    "practical, known": Practical(dynamics=RIVER),
}


def fresh(name):
    """The same options in another object."""
    strategy = SHARED[name]
    return replace(strategy, **{field.name: getattr(strategy, field.name) for field in fields(strategy)})


def everything(result):
    """All that a run brought home, and what was said of it."""
    parts = [result.counts, *result.model.stored(), result.unmet, result.curve]
    said = (result.stop, result.steps, result.attempts, str(result.guarantee), result.strategy, dict(result.work))
    return *said, [part.tolist() for part in parts]


def walk(collector, seed):
    """Ask and tell, one step at a time."""
    rng, s = np.random.default_rng(seed), RIVER.start
    while not collector.done:
        a = collector.ask(s)
        succ, p = RIVER.p(s, a)
        s_next = int(succ[np.searchsorted(np.cumsum(p), rng.random(), side="right")])
        collector.tell(s, a, s_next)
        s = s_next
        yield


# Options


@pytest.mark.parametrize("name", SHARED)
def test_options_cannot_be_changed(name):
    strategy = SHARED[name]
    for field in fields(strategy):
        with pytest.raises(FrozenInstanceError):
            setattr(strategy, field.name, getattr(strategy, field.name))
    with pytest.raises(FrozenInstanceError):
        strategy.lost = {}


@pytest.mark.parametrize("name", [name for name in SHARED if name != "gosprl, costs"])  # arrays have no hash
def test_the_same_options_are_the_same_strategy(name):
    again = fresh(name)
    assert again is not SHARED[name]
    assert again == SHARED[name]
    assert hash(again) == hash(SHARED[name])
    assert {again: 1}[SHARED[name]] == 1
    assert repr(again) == repr(SHARED[name])


def test_other_options_are_another_strategy():
    assert len({Gosprl(), Gosprl(scale=0.1), Gosprl(delta=0.2), Guarded(), Guarded(kappa=2.0), Practical()}) == 6


@pytest.mark.parametrize("name", SHARED)
def test_a_run_leaves_the_options_as_they_are(name):
    strategy = SHARED[name]
    before = pickle.dumps(strategy)
    assert gosprl.collect(RIVER, 3, strategy=strategy, seed=0).met
    assert pickle.dumps(strategy) == before
    assert set(vars(strategy)) == {field.name for field in fields(strategy)}


# Sharing


@pytest.mark.parametrize("name", SHARED)
def test_one_object_in_two_runs_one_after_another(name):
    """Also after a run that failed."""
    alone = [everything(gosprl.collect(RIVER, 3, strategy=fresh(name), seed=seed)) for seed in (0, 1)]
    shared = [everything(gosprl.collect(RIVER, 3, strategy=SHARED[name], seed=seed)) for seed in (0, 1)]
    assert shared == alone
    assert everything(gosprl.collect(RIVER, 3, strategy=SHARED[name], seed=0)) == alone[0]

    def fails(model):
        if model.visits.sum() > 3:
            raise RuntimeError("no need")
        return 5

    with pytest.raises(CollectionError, match="no need"):
        gosprl.collect(RIVER, fails, strategy=SHARED[name], seed=0)
    assert everything(gosprl.collect(RIVER, 3, strategy=SHARED[name], seed=1)) == alone[1]


@pytest.mark.parametrize("name", SHARED)
def test_one_object_in_two_runs_in_turns(name):
    """Two collectors that ask and tell by turns, with other seeds and other needs."""
    needs = (3, np.arange(6))
    alone = []
    for seed, need in enumerate(needs):
        collector = table_collector(6, 2, need, strategy=fresh(name), seed=seed)
        for _ in walk(collector, seed):
            pass
        alone.append(everything(collector.result()))
    pair = [table_collector(6, 2, need, strategy=SHARED[name], seed=seed) for seed, need in enumerate(needs)]
    walks = [walk(collector, seed) for seed, collector in enumerate(pair)]
    assert pair[0].strategy is pair[1].strategy is SHARED[name]
    assert pair[0].planner is not pair[1].planner
    while walks:
        for one in list(walks):
            if next(one, "over") == "over":
                walks.remove(one)
    assert [everything(collector.result()) for collector in pair] == alone


@pytest.mark.parametrize("name", SHARED)
def test_one_object_in_two_runs_on_one_model_in_turns(name):
    """The counts are shared then, the planners are not: what one does must not confuse the other."""
    model = EmpiricalModel.over(RIVER.rows)
    pair = [Collector(model=model, need=30, strategy=SHARED[name], seed=seed) for seed in (0, 1)]
    first = pair[0].run(RIVER, max_steps=20)
    assert first.steps == 20
    assert pair[1].run(RIVER, max_steps=20).steps == 20
    assert model.visits.sum() == 40


def test_one_object_in_two_threads():
    strategy = SHARED["guarded"]
    alone = [everything(gosprl.collect(ROOM, 3, strategy=Guarded(), seed=seed)) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(gosprl.collect, ROOM, 3, strategy=strategy, seed=seed) for seed in range(4)]
        assert [everything(run.result()) for run in runs] == alone


def test_one_object_in_two_processes():
    """Pickled there and back: also with dynamics, successors and costs."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        runs = {
            (name, seed): pool.submit(gosprl.collect, RIVER, 3, strategy=strategy, seed=seed)
            for name, strategy in SHARED.items()
            for seed in (0, 1)
        }
        for (name, seed), run in runs.items():
            here = gosprl.collect(RIVER, 3, strategy=fresh(name), seed=seed)
            assert everything(run.result()) == everything(here), name


@pytest.mark.parametrize("name", SHARED)
def test_a_pickled_strategy_is_the_same(name):
    again = pickle.loads(pickle.dumps(SHARED[name]))
    assert type(again) is type(SHARED[name])
    runs = [gosprl.collect(RIVER, 3, strategy=strategy, seed=2) for strategy in (again, SHARED[name])]
    assert everything(runs[0]) == everything(runs[1])


# Nothing is kept alive


MACHINERY = (Planner, Workspace, Focus, AveragePlanner, Need, Record, Engine, Collector, System)


@pytest.fixture
def made(monkeypatch):
    """Weak references to everything of these kinds that is made, but for the user's own systems."""
    refs = []
    for kind in (GosprlPlanner, Workspace, Focus, AveragePlanner, Need, Record, Engine, Collector):

        def noted(self, *given, kind=kind, begin=kind.__init__, **named):
            refs.append(weakref.ref(self))
            begin(self, *given, **named)

        monkeypatch.setattr(kind, "__init__", noted)
    return refs


class Kept(Strategy):
    """Another strategy, with weak references to its planners."""

    def __init__(self, strategy, refs):
        self.strategy, self.refs, self.dynamics = strategy, refs, strategy.dynamics

    def begin(self, model, need, rng):
        planner = self.strategy.begin(model, need, rng)
        self.refs.append(weakref.ref(planner))
        return planner


def reachable(root):
    """The types of all objects that are reachable from this one, but for code."""
    seen, queue = {id(root)}, [root]
    found = set()
    while queue:
        one = queue.pop()
        found.add(type(one))
        for other in gc.get_referents(one):
            code = isinstance(other, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType))
            if not code and id(other) not in seen:
                seen.add(id(other))
                queue.append(other)
    return found


@pytest.mark.parametrize("system", ["compiled", "environment"])
@pytest.mark.parametrize("name", SHARED)
def test_planners_are_freed_when_a_run_is_over(name, system, made):
    """The result is still there, and nothing of it leads to what the run was made with."""
    walked = RIVER if system == "compiled" else gymnasium.make("gosprl/riverswim6-v0")
    result = gosprl.collect(walked, 3, strategy=Kept(SHARED[name], made), seed=0)
    del walked
    gc.collect()
    assert result.met
    assert len(made) >= (5 if name == "random" else 6)  # collector, record, need, engine, planner; and what it plans in
    assert [ref() for ref in made] == [None] * len(made)
    assert not [kind for kind in reachable(result) if issubclass(kind, MACHINERY)]
    assert result.limit > 0  # which is solved for only now
    assert "Result" in repr(result)


def test_a_collector_keeps_its_planner(made):
    """So that the test above can fail."""
    collector = table_collector(6, 2, 3, strategy=Kept(Gosprl(), made), seed=0)
    result = collector.run(RIVER)
    gc.collect()
    assert all(ref() is not None for ref in made)
    assert {Collector, Record, Need, Workspace} <= reachable(collector)
    assert not [kind for kind in reachable(result) if issubclass(kind, MACHINERY)]
    del collector
    gc.collect()
    assert all(ref() is None for ref in made)
