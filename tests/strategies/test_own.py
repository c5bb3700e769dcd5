"""Strategies of a user's own: what they may leave out, and what is said of whatever they return wrongly.

Everything is tried on a compiled walk, on a system that is stepped through, and by ask and tell; at the first attempt
and in the middle of a run.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from stepped import Stepped

import gosprl
from gosprl import CollectionError, Collector, EmpiricalModel, Guarantee, InputError
from gosprl.envs import make
from gosprl.strategies import UNLIMITED, Attempt, GivenUp, Gosprl, Planner, Strategy

RIVER = make("riverswim6")  # rows 2 s and 2 s + 1 are those of state s
S, R = RIVER.num_states, len(RIVER.rows)
LATER = 7  # steps after which something is returned wrongly, if not at once


class Python(Stepped):
    """One uniform number a step."""

    def take(self, s, action):
        succ, p = self.table.p(s, action)
        return int(succ[np.searchsorted(np.cumsum(p), self.rng.random(), side="right")]), 0.0


def left(horizon=UNLIMITED):
    """A good attempt: always the first action."""
    return Attempt(RIVER.rows.ptr[:-1].copy(), np.zeros(S, dtype=bool), np.full(R, UNLIMITED), horizon)


def uniform():
    return replace(left(), policy=np.full(R, 0.5))


class Own(Strategy):
    """Begins well, for `after` steps; after that, `answer(s)` is the attempt."""

    def __init__(self, answer, after=0):
        self.answer, self.after = answer, after

    def begin(self, model, need, rng):
        return OwnPlanner(self)


class OwnPlanner(Planner):
    def __init__(self, options):
        self.options = options

    def attempt(self, s, t):
        return self.options.answer(s) if t > self.options.after else left(self.options.after - t + 1)


def asked(collector, rng, most=100):
    """Ask and tell for some steps, or until done."""
    s = RIVER.start
    for _ in range(most):
        if collector.done:
            return
        a = collector.ask(s)
        succ, p = RIVER.p(s, a)
        s_next = int(rng.choice(succ, p=p))
        collector.tell(s, a, s_next)
        s = s_next


def over(strategy, need=1000):
    return Collector(model=EmpiricalModel.over(RIVER.rows), need=need, strategy=strategy, seed=0)


WAYS = ["compiled", "stepped", "asked"]


def go(way, strategy, need=1000, most=100):
    """The result of so many steps, or of fewer if all is met."""
    if way == "asked":
        collector = over(strategy, need)
        asked(collector, np.random.default_rng(0), most)
        return collector.result()
    return gosprl.collect(system(way), need, strategy=strategy, seed=0, max_steps=most)


def system(way):
    return RIVER if way == "compiled" else Python(RIVER)


def fails(way, strategy, words, at_once, need=1000):
    """Run into an error that says `words`, at once or after some steps; the result, in which nothing is lost."""
    if way == "asked":
        collector = over(strategy, need)
        with pytest.raises(InputError, match=words):
            asked(collector, np.random.default_rng(0))
        with pytest.raises(InputError, match=words):  # again: it does not hang, nor go on
            collector.ask(collector.engine.state)
        result = collector.result()
        assert result.stop == "running"
    else:
        with pytest.raises(InputError if at_once else CollectionError, match=words) as caught:
            go(way, strategy, need)
        if at_once:
            return None
        assert isinstance(caught.value.__cause__, InputError)
        result = caught.value.result
        assert result.stop == "failed"
    assert result.steps == result.counts.sum() == result.model.visits.sum()
    assert (result.steps == 0) == at_once
    assert not result.met
    return result


def with_policy(entry):
    """A policy of rows with this entry everywhere."""
    return lambda s: replace(left(), policy=np.full(S, entry))


def with_probabilities(first, second):
    """A policy of probabilities with these of the two rows of every state."""
    return lambda s: replace(left(), policy=np.tile([first, second], S).astype(float))


def with_field(name, value):
    return lambda s: replace(left(), **{name: value})


PERHAPS = "expected OwnPlanner.attempt to return an Attempt or GivenUp"
ROWS = r"attempt.policy: expected rows, int64 \[S\] = \(6,\), or probabilities, float64 \[R\] = \(12,\), got "
HANDED_BACK = r"attempt.policy: expected a row for state \d, where the attempt begins, got -1 \(hand back\)"
ROW = r"attempt.policy: expected a row of state \d, \d+\.\.\d+, or -1 to hand back, got "
SHARES = r"attempt.policy: expected probabilities of the rows \d+\.\.\d+ of state \d, got "
HORIZON = "attempt.horizon: expected a whole number >= 1, got "
GOALS = r"attempt.goals: expected bool \[S\] = \(6,\), got "
LIMIT = r"attempt.limit: expected int64 \[R\] = \(12,\), got "
SAMPLE = "attempt.sample: expected True or False, got "
STATES = "GivenUp.states: expected "

WRONG = {
    "nothing": (lambda s: None, PERHAPS + ", got None"),
    "a number": (lambda s: 3, PERHAPS + ", got 3"),
    "a pair": (lambda s: (left().policy, 10), PERHAPS),
    "a class": (lambda s: Attempt, PERHAPS),
    "policy: None": (with_field("policy", None), ROWS + "NoneType"),
    "policy: list": (with_field("policy", [0] * S), ROWS + "list"),
    "policy: int32": (with_field("policy", np.zeros(S, dtype=np.int32)), ROWS + r"int32 \(6,\)"),
    "policy: uint64": (with_field("policy", np.zeros(S, dtype=np.uint64)), ROWS + r"uint64 \(6,\)"),
    "policy: other byte order": (with_field("policy", np.zeros(S, dtype=">i8")), ROWS + r">i8|int64"),
    "policy: float32": (with_field("policy", np.full(R, 0.5, dtype=np.float32)), ROWS + r"float32 \(12,\)"),
    "policy: objects": (with_field("policy", np.zeros(S, dtype=object)), ROWS + r"object \(6,\)"),
    "policy: bool": (with_field("policy", np.zeros(S, dtype=bool)), ROWS + r"bool \(6,\)"),
    "policy: too long": (with_field("policy", np.zeros(S + 1, dtype=np.int64)), r"attempt.policy: .* got int64 \(7,\)"),
    "policy: too short": (with_field("policy", np.zeros(S - 1, dtype=np.int64)), r"attempt.policy: .* got int64 \(5,"),
    "policy: empty": (with_field("policy", np.zeros(0, dtype=np.int64)), r"attempt.policy: .* got int64 \(0,\)"),
    "policy: [S, 1]": (with_field("policy", np.zeros((S, 1), dtype=np.int64)), r"attempt.policy: .* got int64 \(6, 1"),
    "policy: 0-dimensional": (with_field("policy", np.array(0)), r"attempt.policy: .* got int64 \(\)"),
    "policy: actions of rows": (with_field("policy", np.zeros(R, dtype=np.int64)), r"attempt.policy: .* int64 \(12,"),
    "policy: probabilities of states": (with_field("policy", np.ones(S)), r"attempt.policy: .* got float64 \(6,\)"),
    "policy: [S, A]": (with_field("policy", np.full((S, 2), 0.5)), r"attempt.policy: .* got float64 \(6, 2\)"),
    "row of the next state": (lambda s: replace(left(), policy=left().policy + 2), ROW),
    "row of the state before": (lambda s: replace(left(), policy=left().policy - 3), ROW),
    "row R": (with_policy(R), ROW + "12"),
    "row far out": (with_policy(2**62), ROW + str(2**62)),
    "row -2": (with_policy(-2), ROW + "-2"),
    "least row": (with_policy(-(2**63)), ROW + str(-(2**63))),
    "hands back at once": (with_policy(-1), HANDED_BACK),
    "negative": (with_probabilities(1.5, -0.5), SHARES),
    "negative, drawn last": (with_probabilities(-0.5, 1.5), SHARES),
    "nan": (with_probabilities(np.nan, 1), SHARES),
    "nan, drawn last": (with_probabilities(1, np.nan), SHARES),
    "infinite": (with_probabilities(np.inf, 0), SHARES),
    "nothing likely": (with_probabilities(0, 0), SHARES),
    "too little": (with_probabilities(0.5, 0.49), SHARES),
    "too much": (with_probabilities(0.5, 0.51), SHARES),
    "far too much": (with_probabilities(1, 1), SHARES),
    "goals: None": (with_field("goals", None), GOALS + "NoneType"),
    "goals: list": (with_field("goals", [False] * S), GOALS + "list"),
    "goals: ints": (with_field("goals", np.zeros(S, dtype=np.int64)), GOALS + r"int64 \(6,\)"),
    "goals: too long": (with_field("goals", np.zeros(S + 1, dtype=bool)), GOALS + r"bool \(7,\)"),
    "goals: too short": (with_field("goals", np.zeros(1, dtype=bool)), GOALS + r"bool \(1,\)"),
    "goals: one state": (with_field("goals", 3), GOALS + "int"),
    "limit: None": (with_field("limit", None), LIMIT + "NoneType"),
    "limit: a number": (with_field("limit", 10), LIMIT + "int"),
    "limit: floats": (with_field("limit", np.full(R, np.inf)), LIMIT + r"float64 \(12,\)"),
    "limit: int32": (with_field("limit", np.full(R, 10, dtype=np.int32)), LIMIT + r"int32 \(12,\)"),
    "limit: of states": (with_field("limit", np.full(S, 10)), LIMIT + r"int64 \(6,\)"),
    "limit: [S, A]": (with_field("limit", np.full((S, 2), 10)), LIMIT + r"int64 \(6, 2\)"),
    "horizon: 0": (with_field("horizon", 0), HORIZON + "0"),
    "horizon: negative": (with_field("horizon", -5), HORIZON + "-5"),
    "horizon: float": (with_field("horizon", 10.0), HORIZON + "10.0"),
    "horizon: infinite": (with_field("horizon", np.inf), HORIZON + "inf"),
    "horizon: None": (with_field("horizon", None), HORIZON + "None"),
    "horizon: True": (with_field("horizon", True), HORIZON + "True"),
    "horizon: text": (with_field("horizon", "10"), HORIZON + "'10'"),
    "horizon: array": (with_field("horizon", np.array([10, 10])), HORIZON),
    "sample: text": (with_field("sample", "yes"), SAMPLE + "'yes'"),
    "sample: None": (with_field("sample", None), SAMPLE + "None"),
    "sample: a mask": (with_field("sample", np.ones(S, dtype=bool)), SAMPLE),
    "sample with probabilities": (lambda s: replace(uniform(), sample=True), "attempt.sample: expected False with"),
    "given up: None": (lambda s: GivenUp(None), STATES + r"a dict \{state: reason\}, got None"),
    "given up: a number": (lambda s: GivenUp(3), STATES + "a dict .* got 3"),
    "given up: a list": (lambda s: GivenUp([1, 2]), STATES + r"a dict .* got \[1, 2\]"),
    "given up: text": (lambda s: GivenUp("far"), STATES + "a dict .* got 'far'"),
    "given up: state S": (lambda s: GivenUp({S: "far"}), STATES + r"a state in 0\.\.5, got 6"),
    "given up: state -1": (lambda s: GivenUp({-1: "far"}), STATES + r"a state in 0\.\.5, got -1"),
    "given up: half a state": (lambda s: GivenUp({0.5: "far"}), STATES + "whole numbers"),
    "given up: a name": (lambda s: GivenUp({"x": "far"}), STATES + "whole numbers"),
    "given up: no reason": (lambda s: GivenUp({1: None}), STATES + "a reason in words for state 1, got None"),
}


@pytest.mark.parametrize("after", [0, LATER])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_attempt_is_an_error_that_names_the_field(wrong, way, after):
    answer, words = WRONG[wrong]
    result = fails(way, Own(answer, after), words, after == 0)
    assert result is None or result.steps == after


@pytest.mark.parametrize("way", WAYS)
def test_a_policy_that_is_wrong_far_away_is_noticed_when_the_walk_comes_there(way):
    """Entries are checked where they are used: here in state 3, and never in the states before it."""
    policy = left().policy + 1  # always swim
    policy[3] = 0
    steps = []

    def answer(s):
        steps.append(s)
        return replace(left(), policy=policy)

    if way == "asked":
        collector = over(Own(answer))
        with pytest.raises(InputError, match=ROW + "0"):
            asked(collector, np.random.default_rng(0), 10_000)
        result = collector.result()
    else:
        with pytest.raises(CollectionError, match=ROW + "0") as caught:
            go(way, Own(answer), most=10_000)
        result = caught.value.result
    assert result.steps == result.counts.sum() > 3
    assert result.counts[3:].sum() == 0
    assert result.counts[:3, 1].sum() == result.steps
    assert len(steps) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["begin", "type", "class", "duck"])
def test_what_is_no_planner_or_no_strategy(what, way):
    class Duck:
        def attempt(self, s, t):
            return left()

    class Begins(Strategy):
        def begin(self, model, need, rng):
            return {"begin": None, "type": OwnPlanner, "class": Own(None), "duck": Duck()}[what]

    words = "strategy: expected Begins.begin to return a gosprl.strategies.Planner, got "
    with pytest.raises(InputError, match=words):
        go(way, Begins())
    for wrong in (Begins, Duck(), None, 3, ["gosprl"]):
        with pytest.raises(InputError, match=r"strategy: expected a name, one of guarded, .* or a gosprl"):
            go(way, wrong)


# What a planner says of the run


class Saying(Own):
    """Walks to the left; what its planner says of the run is wrong, from so many steps on."""

    def __init__(self, name, value, after=0):
        super().__init__(lambda s: left(3), 0)
        self.name, self.value, self.from_step = name, value, after

    def begin(self, model, need, rng):
        strategy = self

        class SayingPlanner(OwnPlanner):
            @property
            def guarantee(self):
                return strategy.said("guarantee", model, super().guarantee)

            @property
            def work(self):
                return strategy.said("work", model, super().work)

            @property
            def given_up(self):
                return strategy.said("given_up", model, super().given_up)

        return SayingPlanner(self)

    def said(self, name, model, usual):
        if name != self.name or model.visits.sum() < self.from_step:
            return usual
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


SAID = [
    ("guarantee", None, "expected SayingPlanner.guarantee to be a gosprl.Guarantee, got None"),
    ("guarantee", "delta=0.1", "expected SayingPlanner.guarantee to be a gosprl.Guarantee, got 'delta=0.1'"),
    ("guarantee", Guarantee, "expected SayingPlanner.guarantee to be a gosprl.Guarantee, got <class"),
    ("work", None, "expected SayingPlanner.work to be a dict {name: number}, got None"),
    ("work", 7, "expected SayingPlanner.work to be a dict {name: number}, got 7"),
    ("work", {"plans": "many"}, "expected SayingPlanner.work to be a dict {name: number}, got {'plans': 'many'}"),
    ("given_up", None, "SayingPlanner.given_up: expected a dict {state: reason}, got None"),
    ("given_up", {9: "far"}, r"SayingPlanner.given_up: expected a state in 0\.\.5, got 9"),
    ("given_up", {2: 3}, "SayingPlanner.given_up: expected a reason in words for state 2, got 3"),
]


@pytest.mark.parametrize("after", [0, LATER])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "value", "words"), SAID)
def test_what_is_said_wrongly_of_a_run(name, value, words, way, after):
    """At the beginning it is an error before any step; later one that comes with everything collected."""
    strategy, words = Saying(name, value, after), words.replace("{", r"\{").replace("}", r"\}")
    if way == "asked":
        if after == 0:
            with pytest.raises(InputError, match=words):
                over(strategy)
            return
        collector = over(strategy)
        asked(collector, np.random.default_rng(0), 20)
        with pytest.raises(InputError, match=words):
            collector.result()
        assert collector.model.visits.sum() == 20
        return
    with pytest.raises(CollectionError if after else InputError, match=words) as caught:
        gosprl.collect(system(way), 1000, strategy=strategy, seed=0, max_steps=20)
    if after:
        result = caught.value.result
        assert result.stop == "failed"
        assert result.steps == result.counts.sum() == 20
        assert str(result.guarantee).startswith("none: ")
        assert result.work == {}


@pytest.mark.parametrize("way", ["compiled", "stepped"])
@pytest.mark.parametrize("name", ["guarantee", "work", "given_up"])
def test_a_planner_that_fails_to_say_anything_loses_nothing(name, way):
    with pytest.raises(CollectionError, match="the run failed after 20 steps: no idea") as caught:
        gosprl.collect(system(way), 1000, strategy=Saying(name, RuntimeError("no idea"), LATER), seed=0, max_steps=20)
    assert caught.value.result.steps == caught.value.result.counts.sum() == 20


@pytest.mark.parametrize("way", ["compiled", "stepped"])
@pytest.mark.parametrize("hook", ["attempt", "restart", "account"])
def test_a_planner_that_raises_loses_nothing(hook, way):
    def fail(*given, **named):
        raise RuntimeError("no idea")

    class Failing(Own):
        def begin(self, model, need, rng):
            planner = super().begin(model, need, rng)
            if hook != "attempt":
                setattr(planner, hook, fail)
            return planner

    strategy = Failing(fail if hook == "attempt" else lambda s: left(3), LATER)
    with pytest.raises(CollectionError, match=r"the run failed after \d+ steps: no idea") as caught:
        gosprl.collect(system(way), 1000, strategy=strategy, seed=0, max_steps=20)
    result = caught.value.result
    assert result.stop == "failed"
    assert result.steps == result.counts.sum() == {"attempt": LATER, "restart": 0, "account": 20}[hook]


@pytest.mark.parametrize("delta", [None, 0, 1, "0.1", np.nan])
@pytest.mark.parametrize("way", WAYS)
def test_the_level_of_a_strategy_is_checked_before_any_step(way, delta):
    class Level(Own):
        def __init__(self):
            super().__init__(lambda s: pytest.fail("an attempt was asked for"))
            self.delta = delta

    with pytest.raises(InputError, match="delta: expected a number strictly between 0 and 1"):
        go(way, Level())


# What may be left out, and what is allowed


@dataclass(frozen=True)
class Plain(Strategy):
    """As short as can be: nothing but what has no default."""

    horizon: int = 20

    def begin(self, model, need, rng):
        return PlainPlanner(self, rng)


class PlainPlanner(Planner):
    def __init__(self, options, rng):
        self.options, self.rng = options, rng

    def attempt(self, s, t):
        policy = RIVER.rows.ptr[:-1] + (self.rng.random(S) < 0.9)
        return Attempt(policy, np.zeros(S, dtype=bool), np.full(R, UNLIMITED), self.options.horizon)


@pytest.mark.parametrize("way", WAYS)
def test_a_strategy_without_a_guarantee(way):
    result = go(way, Plain(), 3, 100_000)
    assert result.met
    assert result.counts.min() >= 3
    assert str(result.guarantee) == "none: PlainPlanner states none"
    assert not result.guarantee.holds
    assert result.work == {}
    assert result.unreachable == {}
    assert result.strategy == repr(Plain())
    assert "none: PlainPlanner states none" in repr(result)


def everything(result):
    return result.stop, result.steps, result.counts.tolist(), result.curve.tolist()


LAYOUTS = {
    "read-only": lambda array: np.frombuffer(array.tobytes(), dtype=array.dtype),
    "every second": lambda array: np.repeat(array, 2)[::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "unaligned": lambda array: np.frombuffer(bytearray(b"x" + array.tobytes()), dtype=array.dtype, offset=1),
    "masked": np.ma.masked_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["rows", "probabilities"])
def test_arrays_of_any_layout_are_taken(layout, way, policy):
    """They are the same arrays to whoever wrote the strategy."""

    def answers(change):
        def answer(s):
            attempt = replace(left(), policy=left().policy + 1) if policy == "rows" else uniform()
            parts = {name: change(getattr(attempt, name)) for name in ("policy", "goals", "limit")}
            return replace(attempt, **parts, horizon=np.int64(10))

        return answer

    runs = []
    for change in (LAYOUTS[layout], lambda array: array):
        runs.append(everything(go(way, Own(answers(change)), most=50)))
    assert runs[0] == runs[1]
    assert runs[0][1] == 50


@pytest.mark.parametrize("way", WAYS)
def test_giving_up_ends_a_run_and_is_told(way):
    strategy = Own(lambda s: GivenUp({4: "too far for me", 5: "and so is this"}), LATER)
    result = go(way, strategy, 3)
    assert result.stop == "unreachable"
    assert result.steps == LATER
    assert result.unreachable == {4: "too far for me", 5: "and so is this"}


@pytest.mark.parametrize("way", WAYS)
def test_an_attempt_that_hands_back_on_the_way_is_asked_for_the_next(way):
    """In state 0 and 1 to the right, from there on back: each attempt ends where there is no entry for the state."""
    begins = []

    def answer(s):
        begins.append(s)
        up = s < 2
        policy = np.where((np.arange(S) < 2) == up, left().policy + up, -1)
        return replace(left(), policy=policy)

    result = go(way, Own(answer), most=200)
    assert result.steps == 200
    assert len(begins) > 10
    assert begins[0] == 0
    assert set(begins[1::2]) == {2}
    assert set(begins[2::2]) == {1}
    assert result.counts[3:].sum() == 0


# Goals and costs of one's own


NEED = np.array([0, 1000, 1000, 1000, 1000, 1000])
MASK = r"goals: expected a bool mask \[S\] = \(6,\) with at least one goal, got "
WRONG_GOALS = {
    "nothing": (lambda under: None, MASK + "None"),
    "a state": (lambda under: 3, MASK + "3"),
    "a list": (lambda under: under.tolist(), MASK + r"\["),
    "ints": (lambda under: under.astype(int), MASK + r"int64 \(6,\)"),
    "states": (np.flatnonzero, MASK + r"int64 \(5,\)"),
    "too long": (lambda under: np.ones(7, dtype=bool), MASK + r"bool \(7,\)"),
    "too short": (lambda under: under[1:2], MASK + r"bool \(1,\)"),
    "[S, 1]": (lambda under: under[:, None], MASK + r"bool \(6, 1\)"),
    "no goal": (np.zeros_like, MASK + r"bool \(6,\)"),
    "what is met": (np.ones_like, "goals: expected some of the under-sampled states, got state 0, which is none"),
}


@pytest.mark.parametrize("after", [0, LATER])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", WRONG_GOALS)
def test_wrong_goals_are_an_error_that_names_them(wrong, way, after):
    answer, words = WRONG_GOALS[wrong]

    def goals(under, history, rng):
        return answer(under) if history.visits.sum() >= after else under

    result = fails(way, Gosprl(goals=goals), words, after == 0, NEED)
    assert result is None or result.steps >= after


@pytest.mark.parametrize("way", WAYS)
def test_goals_cannot_be_written_to_the_states_that_are_under_sampled(way):
    """Those are the strategy's own: it would give up what it is asked for."""

    def goals(under, history, rng):
        under[:] = False
        return under

    with pytest.raises((CollectionError, ValueError), match="read-only"):
        go(way, Gosprl(goals=goals))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_goals_of_any_layout_are_taken(layout):
    runs = []
    for change in (LAYOUTS[layout], lambda array: array):
        strategy = Gosprl(goals=lambda under, history, rng, change=change: change(under & True))
        runs.append(everything(gosprl.collect(RIVER, 3, strategy=strategy, seed=0)))
    assert runs[0] == runs[1]
    assert runs[0][0] == "met"


def one_of(costs, value):
    costs = costs.copy()
    costs[3] = value
    return costs


SHAPE = r"costs: expected \[S\] = \(6,\) or \[S, A\] = \(6, 2\), got "
WRONG_COSTS = {
    "nothing": (None, SHAPE + "None"),
    "a number": (2.0, SHAPE + r"shape \(\)"),
    "text": ("cheap", "costs: expected numbers"),
    "a dict": ({0: 1.0}, "costs: expected numbers"),
    "objects": ([None] * 6, "costs: expected (numbers|positive finite costs)"),
    "too long": (np.ones(7), SHAPE + r"shape \(7,\)"),
    "of rows": (np.ones(12), SHAPE + r"shape \(12,\)"),
    "[A, S]": (np.ones((2, 6)), SHAPE + r"shape \(2, 6\)"),
    "empty": (np.ones(0), SHAPE + r"shape \(0,\)"),
    "zero": (one_of(np.ones(6), 0.0), "costs: expected positive finite costs, got 0.0"),
    "negative": (one_of(np.ones(6), -1.0), "costs: expected positive finite costs, got -1.0"),
    "nan": (one_of(np.ones((6, 2)), np.nan), "costs: expected positive finite costs, got nan"),
    "infinite": (one_of(np.ones(6), np.inf), "costs: expected positive finite costs, got inf"),
    "below one": (one_of(np.ones(6), 0.5), r"costs: expected costs in \[1, c_max\], got 0.5"),
}


@pytest.mark.parametrize("after", [0, LATER])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", WRONG_COSTS)
def test_wrong_costs_are_an_error_that_names_them(wrong, way, after):
    value, words = WRONG_COSTS[wrong]

    def costs(model):
        return value if model.visits.sum() >= after else np.ones(6)

    if after == 0:  # when the run begins
        with pytest.raises(InputError, match=words):
            go(way, Gosprl(costs=costs))
        return
    assert fails(way, Gosprl(costs=costs), words, False).steps >= after
