"""Engine: one transition after the other, by the rules; the compiled walk makes the same ones, bit for bit."""

from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped import Stepped

from gosprl import EmpiricalModel, GosprlError, InputError, TabularMDP
from gosprl.collecting import rules
from gosprl.collecting.attempts import checked_attempt
from gosprl.collecting.engine import Engine
from gosprl.collecting.paths import Paths
from gosprl.collecting.record import Record
from gosprl.collecting.requirements import Fixed
from gosprl.collecting.rules import Ended
from gosprl.envs import make
from gosprl.strategies.base import UNLIMITED, Attempt
from gosprl.systems import Outcome, tabular
from gosprl.systems.tabular import Tabular

FAR = UNLIMITED


def made(S, A, pair, state, seed=0, resets="never", **options):
    need = Fixed(np.asarray(pair, dtype=np.int64), np.asarray(state, dtype=np.int64))
    model = EmpiricalModel(S, A)
    model.allow_resets(resets)
    record = Record(model, need, **options)
    record.update_need()
    return Engine(record, np.random.default_rng(seed))


def attempt(engine, goals=(), limit=None, horizon=FAR, policy=None, sample=False):
    S, R = engine.record.model.num_states, len(engine.record.model.rows)
    policy = np.zeros(S, dtype=np.int64) if policy is None else np.asarray(policy)
    mask = np.isin(np.arange(S), goals)
    limit = np.full(R, FAR) if limit is None else np.array(limit)
    return checked_attempt(Attempt(policy, mask, limit, horizon, sample), engine.record.model)


@pytest.fixture
def reasons(monkeypatch):
    """Why attempts ended, one after each step."""
    noted, why_ended = [], rules.why_ended

    def spy(*flags):
        noted.append(Ended(why_ended(*flags)))
        return noted[-1]

    monkeypatch.setattr(rules, "why_ended", spy)
    return noted


# When an attempt ends


# (state reached, steps made, visits of the row) -> why the attempt is over; goal 1, limit 3, horizon 5
@pytest.mark.parametrize(
    ("s_next", "steps", "visits", "why"),
    [
        (0, 1, 1, Ended.GOES_ON),
        (1, 1, 1, Ended.GOAL),
        (0, 1, 3, Ended.GOES_ON),
        (0, 1, 4, Ended.LIMIT),
        (0, 5, 1, Ended.HORIZON),
        (1, 1, 4, Ended.GOAL),
        (0, 5, 4, Ended.LIMIT),
        (1, 5, 4, Ended.GOAL),
        (1, 5, 7, Ended.MET),
    ],
)
def test_why_an_attempt_is_over(s_next, steps, visits, why, reasons):
    engine = made(2, 1, [7, 0], [0, 0])
    for _ in range(visits - 1):
        engine.record.step(0, s_next, 0.0, False)
    engine.begin(attempt(engine, goals=[1], limit=[3, FAR], horizon=5))
    engine.state, engine.made = 0, steps - 1
    engine.arrive(0, s_next, 0.0, False)
    assert reasons == [why]
    assert (engine.attempt is None) == (why != Ended.GOES_ON)
    assert (engine.state, engine.made) == (s_next, steps)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize(("pair", "state"), [([2, 9], [0, 0]), ([0, 9], [2, 0]), ([2, 9], [3, 0])])
def test_an_attempt_that_samples_ends_when_a_state_got_all_it_needs(pair, state, sample, reasons):
    engine = made(2, 1, pair, state)
    engine.state = 0
    engine.begin(attempt(engine, sample=sample))
    steps = max(pair[0], state[0])
    for _ in range(steps):
        engine.arrive(0, 0, 0.0, False)
    last = Ended.SETTLED if sample else Ended.GOES_ON
    assert reasons == [Ended.GOES_ON] * (steps - 1) + [last]


def test_a_reward_above_the_threshold_ends_an_attempt_first(reasons):
    engine = made(3, 2, np.full(6, 9), np.zeros(3), threshold=0.5)
    engine.state = 0
    engine.begin(attempt(engine, goals=[0, 1, 2]))
    engine.arrive(1, 2, 0.5, False)
    engine.state = 0
    engine.begin(attempt(engine, goals=[0, 1, 2]))
    engine.arrive(1, 2, 0.75, False)
    assert reasons == [Ended.GOAL, Ended.FOUND]
    assert engine.record.found == (0, 1, 2, 0.75, 2)


def test_a_door_ends_an_attempt_only_where_components_are_known(reasons):
    engine = made(3, 1, [9, 9, 9], np.zeros(3))
    for components in (None, np.array([0, 0, 1])):
        engine.components = components
        for s, s_next in ((0, 1), (1, 2)):
            engine.state = s
            engine.begin(attempt(engine))
            engine.arrive(s, s_next, 0.0, False)
    assert reasons == [Ended.GOES_ON] * 3 + [Ended.DOOR]


def test_a_reset_is_no_step_of_an_attempt_and_may_end_it(reasons):
    engine = made(3, 1, [9, 9, 9], np.zeros(3), resets="terminal")
    engine.start(0, by_reset=True)
    engine.begin(attempt(engine, goals=[2], horizon=2))
    engine.arrive(0, 1, 0.0, True)
    assert engine.at_reset
    engine.reset(0)
    assert (engine.made, engine.state, engine.at_reset) == (1, 0, False)
    assert engine.attempt is not None
    engine.arrive(0, 1, 0.0, True)
    assert reasons == [Ended.GOES_ON, Ended.GOES_ON, Ended.HORIZON]
    engine.begin(attempt(engine, goals=[2], horizon=2))
    engine.reset(2)
    assert reasons[3:] == [Ended.GOAL]
    assert (engine.record.steps, engine.record.resets) == (2, 2)


# Which row is taken


def test_choose():
    engine = made(2, 3, np.ones(6), [0, 0], seed=5)
    engine.begin(attempt(engine, policy=[2, -1]))
    engine.state = 0
    assert engine.choose() == 2
    engine.arrive(2, 1, 0.0, False)
    assert engine.choose() == -1
    assert engine.attempt is None  # handed back
    probabilities = np.array([1.0, 0, 0, 0.2, 0.0, 0.8])
    engine.begin(attempt(engine, policy=probabilities))
    uniforms = np.random.default_rng(5).random(40)  # one a choice, none for a fixed policy
    assert [engine.choose() for _ in uniforms] == [3 if u < 0.2 else 5 for u in uniforms]
    engine.state = 0
    assert {engine.choose() for _ in uniforms} == {0}


def test_choose_samples_on_the_way():
    """The under-sampled pair with the fewest visits, noted but not yet counted ones included; then the policy."""
    engine = made(2, 3, [0, 2, 2, 0, 0, 0], [0, 9])
    engine.state = 0
    engine.begin(attempt(engine, policy=[0, 5], sample=True))
    taken = []
    for _ in range(5):
        taken.append(engine.choose())
        engine.arrive(taken[-1], 0, 0.0, False)
        if engine.attempt is None:
            engine.begin(attempt(engine, policy=[0, 5], sample=True))
    assert taken == [1, 2, 1, 2, 0]
    engine.state = 1  # where only the state is needed, whatever the action: that is the policy's to say
    assert engine.choose() == 5
    engine.begin(attempt(engine, policy=[0, 5], sample=False))
    engine.state = 0
    assert engine.choose() == 0


@pytest.mark.parametrize("row", [3, 5, -2, 99])
def test_a_policy_whose_entry_is_no_row_of_the_state(row):
    engine = made(2, 3, np.ones(6), [0, 0])
    engine.state = 0
    engine.begin(attempt(engine, policy=[row, 3]))
    words = rf"^attempt\.policy: expected a row of state 0, 0\.\.2, or -1 to hand back, got {row}$"
    with pytest.raises(InputError, match=words):
        engine.choose()


@pytest.mark.parametrize("p", [[0.5, 0.2, 0.1], [-0.5, 1.0, 0.5], [np.nan, 1.0, 0.0], [0, 0, 0]])
def test_a_policy_that_is_no_distribution(p):
    engine = made(2, 3, np.ones(6), [0, 0], seed=3)
    engine.rng = SimpleNamespace(random=lambda: 0.95)
    engine.state = 1
    engine.begin(attempt(engine, policy=np.array([1.0, 0, 0, *p])))
    with pytest.raises(
        InputError, match=r"^attempt\.policy: expected probabilities of the rows 3\.\.5 of state 1, got"
    ):
        engine.choose()


def test_handing_back_before_any_transition_makes_no_progress():
    engine = made(2, 1, [9, 9], [0, 0])
    engine.state = 0
    engine.begin(attempt(engine, policy=[-1, 1]))
    with pytest.raises(InputError, match=r"^attempt\.policy: expected a row for state 0, where the attempt begins"):
        engine.choose()
    engine = made(2, 1, [9, 9], [0, 0], resets="terminal")
    engine.state = engine.record.model.states.reset
    engine.begin(attempt(engine, policy=[-1, 1]))
    engine.reset(0)  # a transition, if no step
    assert engine.choose() == -1
    assert engine.attempt is None


# What an attempt must be

GOOD = {
    "policy": np.array([0, 1, 3]),
    "goals": np.zeros(3, dtype=bool),
    "limit": np.full(4, FAR),
    "horizon": 5,
    "sample": False,
}


FOUR = EmpiricalModel(3, np.array([[True, False], [True, False], [True, True]]))  # three states, four rows


def test_a_good_attempt_is_taken_as_it_is():
    for policy in (GOOD["policy"], np.array([1.0, 1.0, 0.5, 0.5])):
        given = Attempt(**GOOD | {"policy": policy})
        assert checked_attempt(given, FOUR) is given


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("policy", np.array([0, 1]), r"int64 \[S\] = \(3,\), got int64 \(2,\)"),
        ("policy", np.array([0, 1, 3, 3]), r"int64 \[S\] = \(3,\), got int64 \(4,\)"),
        ("policy", np.array([1.0, 1.0, 0.5]), r"float64 \[R\] = \(4,\), got float64 \(3,\)"),
        (
            "policy",
            np.array([0, 1, 3], dtype=np.int32),
            r"rows, int64 .* or probabilities, float64 .*, got int32 \(3,\)",
        ),
        ("policy", np.array([True, True, True]), r"rows, int64 .* got bool \(3,\)"),
        ("policy", np.ones(4, dtype=np.float32), r"rows, int64 .* got float32 \(4,\)"),
        ("policy", [0, 1, 3], "rows, int64 .* got list"),
        ("policy", None, "rows, int64 .* got NoneType"),
        ("policy", np.zeros((3, 1), dtype=np.int64), r"int64 \[S\] = \(3,\), got int64 \(3, 1\)"),
        ("goals", np.zeros(4, dtype=bool), r"bool \[S\] = \(3,\), got bool \(4,\)"),
        ("goals", np.zeros(3, dtype=np.int64), r"bool \[S\] = \(3,\), got int64 \(3,\)"),
        ("goals", [0], r"bool \[S\] = \(3,\), got list"),
        ("limit", np.full(3, FAR), r"int64 \[R\] = \(4,\), got int64 \(3,\)"),
        ("limit", np.full(4, np.inf), r"int64 \[R\] = \(4,\), got float64 \(4,\)"),
        ("limit", FAR, r"int64 \[R\] = \(4,\), got int"),
        ("horizon", 0, "a whole number >= 1, got 0"),
        ("horizon", -1, "a whole number >= 1, got -1"),
        ("horizon", 2.0, r"a whole number >= 1, got 2\.0"),
        ("horizon", np.inf, "a whole number >= 1, got inf"),
        ("horizon", True, "a whole number >= 1, got True"),
        ("horizon", None, "a whole number >= 1, got None"),
        ("sample", 2, "True or False, got 2"),
        ("sample", "yes", "True or False, got 'yes'"),
        ("sample", None, "True or False, got None"),
    ],
)
def test_attempts_are_checked(field, value, words):
    with pytest.raises(InputError, match=rf"^attempt\.{field}: expected {words}"):
        checked_attempt(Attempt(**GOOD | {field: value}), FOUR)


def test_probabilities_and_sampling_on_the_way_do_not_go_together():
    given = Attempt(np.ones(3), np.zeros(3, dtype=bool), np.ones(3, dtype=np.int64), 1, sample=True)
    with pytest.raises(InputError, match=r"^attempt\.sample: expected False with a policy of probabilities"):
        checked_attempt(given, EmpiricalModel(3, 1))


def test_arrays_that_compiled_code_cannot_read_are_copied():
    wide = np.zeros((4, 2), dtype=np.int64)
    wide[:3, 0] = GOOD["policy"]
    frozen = np.full(4, 7)
    frozen.flags.writeable = False
    reversed_ = np.array([True, False, False])[::-1]
    given = Attempt(wide[:3, 0], reversed_, frozen, np.int64(5), np.bool_(True))
    checked = checked_attempt(given, FOUR)
    assert (type(checked.horizon), type(checked.sample), checked.sample) == (int, bool, True)
    for field in ("policy", "goals", "limit"):
        array = getattr(checked, field)
        assert array.tolist() == getattr(given, field).tolist()
        assert array.flags.carray


# Starting, breaking off


def test_a_start_is_no_transition_and_drops_the_attempt():
    engine = made(3, 1, [9, 9, 9], np.zeros(3))
    engine.start(1)
    assert (engine.state, engine.broken, engine.record.steps) == (1, True, 0)
    engine.broken = False
    engine.begin(attempt(engine))
    engine.start(1)  # even in the state where the walk is
    assert (engine.attempt, engine.broken, engine.record.model.visits.sum()) == (None, True, 0)
    assert engine.record.model.discovered == [1]


def test_a_start_by_a_reset_is_a_sample_of_the_start():
    engine = made(2, 1, [9, 9], np.zeros(2), resets="terminal")
    for s in (0, 1, 1):
        engine.start(s, by_reset=True)
    engine.start(0)
    engine.record.flush()
    assert np.column_stack(engine.record.model.starts()).tolist() == [[0, 1], [1, 2]]
    assert (engine.record.steps, engine.record.resets) == (0, 0)  # whoever starts it counts resets


# Following an attempt through a system


class Scripted(Stepped):
    """Returns the given outcomes one after the other."""

    def __init__(self, mdp, outcomes, starts=(0,)):
        super().__init__(mdp)
        self.outcomes, self.starts, self.resets = list(outcomes), list(starts), 0

    def reset(self):
        self.resets += 1
        return self.starts.pop(0)

    def step(self, action):
        return self.outcomes.pop(0)


def ring(states):
    s = np.arange(states)
    return TabularMDP((s, 0 * s, (s + 1) % states, np.ones(states)))


def begun(system, policy=None, resets="terminal", **options):
    model = system.model()
    S, R = model.num_states, len(model.rows)
    model.allow_resets(resets)
    record = Record(model, Fixed(np.full(R, 99), np.zeros(S, dtype=np.int64)))
    record.update_need()
    engine = Engine(record, np.random.default_rng(0))
    engine.start(*engine.reset_of(system), by_reset=True)
    engine.broken = False
    engine.begin(attempt(engine, policy=model.rows.ptr[:S].copy() if policy is None else policy, **options))
    return engine


def test_it_stops_after_the_steps_that_it_is_given_and_goes_on():
    engine = begun(Scripted(ring(4), []), horizon=9)
    whole = begun(Scripted(ring(4), []), horizon=9)
    outcomes = [Outcome((t + 1) % 4, float(t)) for t in range(9)]
    system = Scripted(ring(4), outcomes)
    for steps, made_ in ((1, 1), (3, 4), (2, 6)):
        engine.follow(system, steps)
        assert (engine.made, engine.state) == (made_, made_ % 4)
        assert engine.attempt is not None
    engine.follow(system, 100)
    assert (engine.attempt, engine.made, engine.state) == (None, 9, 1)
    whole.follow(Scripted(ring(4), outcomes), 100)
    for e in (engine, whole):
        e.record.flush()
    assert [part.tolist() for part in engine.record.model.counts] == [
        part.tolist() for part in whole.record.model.counts
    ]
    assert engine.record.model.reward_sum.sum() == sum(range(9))


@pytest.mark.parametrize("resets", ["never", "terminal"])
def test_a_truncation_starts_elsewhere_and_drops_the_attempt(resets):
    """The step counts, the jump does not; where the start is learnt, the reset is a sample of it."""
    system = Scripted(ring(4), [Outcome(1), Outcome(2, 0.0, False, True)], starts=[0, 2])
    engine = begun(system, resets=resets)
    engine.follow(system, 10)
    engine.record.flush()
    assert (engine.attempt, engine.broken, engine.state, system.resets) == (None, True, 2, 2)
    model = engine.record.model
    assert np.column_stack(model.transitions()).tolist() == [[0, 0, 1, 1], [1, 0, 2, 1]]
    assert np.column_stack(model.starts()).tolist() == ([] if resets == "never" else [[0, 1], [2, 1]])
    assert engine.record.resets == 1


def test_episodes_are_cut_off_at_the_horizon():
    system = Scripted(ring(4), [Outcome((t + 1) % 4) for t in range(3)], starts=[0, 2])
    engine = begun(system)
    engine.horizon = 3
    engine.follow(system, 10)
    engine.record.flush()
    assert (engine.attempt, engine.broken, engine.state, engine.age, system.resets) == (None, True, 2, 0, 2)
    assert np.column_stack(engine.record.model.starts()).tolist() == [[0, 1], [2, 1]]


@pytest.mark.parametrize("truncated", [False, True])
def test_a_termination_is_followed_by_a_reset_that_counts(truncated):
    outcomes = [Outcome(1), Outcome(3, 0.0, True, truncated), Outcome(3, 0.0, True)]
    system = Scripted(ring(4), outcomes, starts=[0, 2, 1])
    engine = begun(system, horizon=3)
    engine.follow(system, 10)
    engine.record.flush()
    model = engine.record.model
    assert (engine.attempt, engine.broken, engine.state, system.resets) == (None, False, model.states.reset, 2)
    final = model.states.final(3)
    assert np.column_stack(model.transitions()).tolist() == [[0, 0, 1, 1], [1, 0, final, 1], [2, 0, final, 1]]
    assert np.column_stack(model.starts()).tolist() == [[0, 1], [2, 1]]
    assert (engine.record.steps, engine.record.resets) == (3, 1)


def test_an_interrupt_is_heard_between_two_steps():
    system = Scripted(ring(4), [Outcome(1), Outcome(2), Outcome(3)])
    engine = begun(system)
    step = system.step

    def interrupting(action):
        engine.interrupted = len(system.outcomes) == 2
        return step(action)

    system.step = interrupting
    engine.follow(system, 10)
    assert (engine.made, engine.state, engine.record.steps) == (2, 2, 2)
    assert engine.attempt is not None


# What a system may return instead

BAD = {
    "nothing": (None, r"system: expected Scripted\.step to return an Outcome \(state, reward, .*\), got None"),
    "a number": (2, r"system: expected Scripted\.step to return an Outcome .*, got 2"),
    "three": ((2, 0.0, False), r"system: expected Scripted\.step to return an Outcome .*, got \(2, 0\.0, False\)"),
    "six": ((2, 0.0, False, False, None, {}), r"system: expected Scripted\.step to return an Outcome .*, got \(2, 0"),
    "info": (Outcome(2, 0.0, False, False, {"left": 1}), r"actions: expected indices of the actions .* \[0\], got"),
    "names": (Outcome(2, 0.0, False, False, ["left"]), r"actions: expected indices of the actions .* \[0\], got"),
    "too many": (Outcome(2, 0.0, False, False, (0, 1)), r"actions: expected indices of the actions .* \[0\], got"),
    "outside": (Outcome(4), r"system: the state that Scripted\.step\(\) returned: expected a state in 0\.\.3, got 4"),
    "negative": (
        Outcome(-1),
        r"system: the state that Scripted\.step\(\) returned: expected a state in 0\.\.3, got -1",
    ),
    "half": (Outcome(1.5), r"system: the state that Scripted\.step\(\) returned: expected whole numbers"),
    "name": (Outcome("two"), r"system: the state that Scripted\.step\(\) returned: expected whole numbers"),
    "no state": (Outcome(None), r"system: the state that Scripted\.step\(\) returned: expected whole numbers"),
    "some states": (Outcome(np.array([1, 2])), r"system: the state that Scripted\.step\(\) returned: .* shape \(2,\)"),
    "reward in words": (Outcome(2, "much"), "reward: expected a finite number, got 'much'"),
    "number in words": (Outcome(2, "1.5"), r"reward: expected a finite number, got '1\.5'"),
    "no reward": (Outcome(2, None), "reward: expected a finite number, got None"),
    "complex": (Outcome(2, 1j), "reward: expected a finite number, got 1j"),
    "nan": (Outcome(2, np.nan), r"rewards: expected finite numbers, got nan at \(s, a\) = \(1, 0\)"),
    "infinite": (Outcome(2, -np.inf), r"rewards: expected finite numbers, got -inf at \(s, a\) = \(1, 0\)"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_a_step_may_not_return(kind):
    outcome, words = BAD[kind]
    system = Scripted(ring(4), [Outcome(1), outcome, Outcome(3)])
    engine = begun(system)
    with pytest.raises(InputError, match=f"^{words}"):
        engine.follow(system, 10)
    engine.record.flush()
    assert (engine.record.steps, engine.record.model.visits[:4].tolist()) == (1, [1, 0, 0, 0])
    assert engine.state is None  # not where it was


@pytest.mark.parametrize(
    "outcome", [(2, 1, 0, 0), Outcome(np.int64(2), np.float32(1), np.bool_(False)), [2, True, 0, 0]]
)
def test_what_a_step_may_return(outcome):
    system = Scripted(ring(4), [Outcome(1), outcome])
    engine = begun(system, horizon=2)
    engine.follow(system, 10)
    engine.record.flush()
    assert (engine.state, type(engine.state), engine.record.model.reward_sum[:4].tolist()) == (2, int, [0, 1, 0, 0])


@pytest.mark.parametrize("state", ["a", 4, -1, 0.5, None, [0], (0, {})])
def test_what_a_reset_may_not_return(state):
    system = Scripted(ring(4), [], starts=[state])
    with pytest.raises(InputError, match=r"^system: the state that Scripted\.reset\(\) returned: expected"):
        begun(system)
    system = Scripted(ring(4), [Outcome(1), Outcome(2, 0.0, False, True)], starts=[0, state])
    engine = begun(system)
    with pytest.raises(InputError, match=r"^system: the state that Scripted\.reset\(\) returned: expected"):
        engine.follow(system, 10)
    assert (engine.state, engine.record.steps) == (None, 2)


@pytest.mark.parametrize("where", ["step", "reset"])
def test_a_system_that_raises_leaves_the_walk_nowhere(where):
    system = Scripted(ring(4), [Outcome(1), Outcome(2, 0.0, False, where == "reset")])
    engine = begun(system)
    with pytest.raises(IndexError):  # nothing is left in the script
        engine.follow(system, 10)
    assert (engine.state, engine.record.steps) == (None, 2)


@pytest.mark.parametrize("ended", [(False, False), (True, False), (False, True)], ids=["goes on", "over", "cut off"])
def test_a_step_that_is_refused_was_made(ended):
    """The system is elsewhere now: only a reset leads on."""
    system = Scripted(ring(4), [Outcome(1), Outcome(3, 0.0, *ended)])
    engine = begun(system)
    engine.record.model.restrict(lambda s, a: [(s + 1) % 4])
    with pytest.raises(GosprlError, match=r"\(s, a\) = \(1, 0\) led to state 3"):
        engine.follow(system, 10)
    assert (engine.state, engine.record.steps, engine.made) == (None, 1, 1)


def test_an_arrival_that_is_refused_changes_nothing():
    engine = made(3, 1, [9, 9, 9], np.zeros(3))
    engine.record.model.restrict(lambda s, a: [0, 1])
    engine.start(0)
    engine.begin(attempt(engine))
    with pytest.raises(GosprlError, match="led to state 2"):
        engine.arrive(0, 2, 0.0, False)
    assert (engine.state, engine.made, engine.record.steps) == (0, 0, 0)
    assert engine.attempt is not None


# The compiled walk and the steps one by one


@st.composite
def mdps(draw):
    """Up to 4 states with up to 3 actions, some missing, sparse enough for one-way doors; rewards of each kind."""
    S, A = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.sampled_from([0, 0, 1, 2, 3]), min_size=S * A * S, max_size=S * A * S))
    P = np.array(weights, dtype=float).reshape(S, A, S)
    for s in range(S):
        if not P[s].any():
            P[s, draw(st.integers(0, A - 1)), draw(st.integers(0, S - 1))] = 1
    P /= np.maximum(P.sum(axis=2, keepdims=True), 1)
    noise = draw(st.sampled_from([None, "none", "bernoulli"]))
    if noise is None:
        return TabularMDP(P, start=draw(st.integers(0, S - 1)))
    low = 0 if noise == "bernoulli" else -4
    means = draw(st.lists(st.integers(low, 4), min_size=S * A, max_size=S * A))
    rewards = np.array(means).reshape(S, A) / 4
    return TabularMDP(P, start=draw(st.integers(0, S - 1)), rewards=rewards, noise=noise)


def numbers(low, high, size):
    return st.lists(st.integers(low, high), min_size=size, max_size=size)


@st.composite
def attempts(draw, mdp):
    """(attempt as a function of the visits so far, steps a call)."""
    S, R, ptr = mdp.num_states, len(mdp.rows), mdp.rows.ptr
    if draw(st.booleans()):
        policy = np.array([draw(st.integers(int(ptr[s]), int(ptr[s + 1]) - 1)) for s in range(S)])
        policy[np.array(draw(numbers(0, 5, S))) == 0] = -1
        sample = draw(st.booleans())
    else:
        weights = np.array(draw(numbers(0, 3, R)), dtype=float) + np.isin(np.arange(R), ptr[:-1])
        policy, sample = weights / np.add.reduceat(weights, ptr[:-1])[mdp.rows.state], False
    goals = np.array(draw(numbers(0, 4, S))) == 0
    more = draw(st.one_of(st.none(), numbers(0, 4, R)))
    horizon = draw(st.sampled_from([1, 2, 5, 30, UNLIMITED]))
    steps = draw(st.sampled_from([1, 2, 7, 40]))

    def make_attempt(visits):
        limit = np.full(R, UNLIMITED) if more is None else visits + np.array(more)
        return Attempt(policy, goals, limit, horizon, sample)

    return make_attempt, steps


@st.composite
def walks(draw):
    mdp = draw(mdps())
    return SimpleNamespace(
        mdp=mdp,
        pair=np.array(draw(numbers(0, 4, len(mdp.rows)))),
        state=np.array(draw(numbers(0, 6, mdp.num_states))) * draw(st.integers(0, 1)),
        threshold=draw(st.sampled_from([np.inf, 0.6, -0.6])),
        seed=draw(st.integers(0, 2**32 - 1)),
        closed=draw(st.booleans()),
        block=draw(st.sampled_from([1, 2, 5, 4096])),
        attempts=draw(st.lists(attempts(mdp), min_size=1, max_size=6)),
    )


def follow(walk, compiled):
    """Everything that happened, attempt by attempt."""
    system, story = Tabular(walk.mdp), []
    streams = np.random.SeedSequence(walk.seed).spawn(2)
    system.seed(np.random.default_rng(streams[1]))
    model = system.model()
    if walk.closed:
        model.restrict(walk.mdp)
    record = Record(model, Fixed(walk.pair, walk.state), walk.threshold)
    record.update_need()
    engine = Engine(record, np.random.default_rng(streams[0]))
    engine.components = Paths(record).look_at(system)
    engine.start(*engine.reset_of(system))
    for make_attempt, steps in walk.attempts:
        if record.need.met or record.found is not None:
            break
        record.flush()
        engine.begin(checked_attempt(make_attempt(model.visits), model))
        try:
            for _ in range(60 // steps + 1):
                if engine.attempt is not None and compiled:
                    system.follow(engine, steps)
                elif engine.attempt is not None:
                    engine.follow(system, steps)
        except InputError as error:  # it hands back before any step
            story.append(str(error))
        record.flush()
        story.append((engine.state, engine.made, engine.attempt is None, record.steps, record.found))
        story.append([part.tolist() for part in (*model.counts[:3], *model.stored(), *model.counts[7:12])])
        story.append([part.tolist() for part in record.need.ledger])
        story.append([float(engine.rng.random()), float(system._look_ahead(1)[0])])  # as many numbers were drawn
        engine.end()
    return story, list(record.curve), model.discovered[:1]


@given(walks())
@settings(max_examples=300, deadline=None)
def test_the_compiled_walk_makes_the_steps_of_the_engine(walk):
    with mock.patch.object(tabular, "BLOCK", walk.block):
        compiled = follow(walk, compiled=True)
    assert compiled == follow(walk, compiled=False)


def test_every_reason_to_end_is_met_by_both(reasons):
    """The comparison above is none of two that never end: here each reason comes up, with the steps it takes."""
    door = TabularMDP(([0, 0, 1, 2], [0, 1, 0, 0], [1, 2, 0, 2], np.ones(4)), rewards=[[0, 0.5], [1, 0], [0, 0]])
    walk = {"mdp": door, "state": np.zeros(3, dtype=np.int64), "seed": 0, "closed": False, "block": 4096}
    # rows: 0 and 1 of state 0, to 1 and through the door to 2; 2 of state 1, back to 0; 3 of state 2, which stays
    pair, goals = [1, 0, 9, 9], np.array([False, True, False])
    nowhere, unlimited = np.zeros(3, dtype=bool), np.full(4, UNLIMITED)
    cases = {
        Ended.GOAL: (Attempt(np.array([0, 2, 3]), goals, unlimited, UNLIMITED), 1),
        Ended.LIMIT: (Attempt(np.array([0, 2, 3]), nowhere, np.array([2, 9, 9, 9]), UNLIMITED), 5),
        Ended.HORIZON: (Attempt(np.array([0, 2, 3]), nowhere, unlimited, 4), 4),
        Ended.DOOR: (Attempt(np.array([1, 2, 3]), nowhere, unlimited, UNLIMITED), 1),
        Ended.SETTLED: (Attempt(np.array([1, 2, 3]), nowhere, unlimited, UNLIMITED, sample=True), 1),
    }
    for why, (given_, steps) in cases.items():
        reasons.clear()
        case = SimpleNamespace(
            **walk, pair=np.array(pair), threshold=np.inf, attempts=[(lambda visits, a=given_: a, 100)]
        )
        compiled, plain = follow(case, True), follow(case, False)
        assert compiled == plain
        assert compiled[0][0][1:4] == (steps, True, steps)
        assert reasons == [Ended.GOES_ON] * (steps - 1) + [why]
    alone = Attempt(np.array([0, 2, 3]), nowhere, unlimited, UNLIMITED)
    for why, pair, threshold, steps in ((Ended.MET, [1, 0, 1, 0], np.inf, 2), (Ended.FOUND, [9, 0, 1, 0], 0.7, 2)):
        reasons.clear()
        case = SimpleNamespace(**walk, pair=np.array(pair), threshold=threshold, attempts=[(lambda visits: alone, 100)])
        compiled, plain = follow(case, True), follow(case, False)
        assert compiled == plain
        assert compiled[0][0][1:4] == (steps, True, steps)
        assert reasons == [Ended.GOES_ON] * (steps - 1) + [why]


@pytest.mark.parametrize("name", ["riverswim6", "toy3", "four_room43"])
def test_a_long_random_walk_is_the_same_one_by_one(name):
    """Beyond any block that is drawn at once."""
    mdp, stories = make(name), []
    R = len(mdp.rows)
    uniform = 1 / np.diff(mdp.rows.ptr)[mdp.rows.state]
    for compiled in (True, False):
        walk = SimpleNamespace(
            mdp=mdp,
            pair=np.full(R, 10**6),
            state=np.zeros(mdp.num_states, dtype=np.int64),
            threshold=np.inf,
            seed=1,
            closed=False,
            block=4096,
        )
        alone = Attempt(uniform, np.zeros(mdp.num_states, dtype=bool), np.full(R, UNLIMITED), 9000)
        walk.attempts = [(lambda visits, a=alone: a, 10**6)]
        stories.append(follow(walk, compiled))
    assert stories[0] == stories[1]
    assert stories[0][0][0][3] == 9000
