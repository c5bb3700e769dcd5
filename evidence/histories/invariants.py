"""What must hold of a run on disk, of a result, and of an answer; an `AssertionError` says what does not."""

from collections import Counter

import numpy as np

import gosprl
from evidence.histories.lives import WALKERS
from evidence.histories.records import contents, counted, discovered, logged
from evidence.histories.systems import CRASHED, Step
from gosprl.errors import GosprlError

DELTA = 1e-9  # of everything here: one statement that is false is a defect
TINY = 1e-9


def log_holds(run, life=None, killed=False, fleet=False):
    """The log has what the diary says: all of it; after a kill a beginning of it, without anything else.

    Returns the entries of the log, which are those of the run from here on.
    """
    there, unknown = logged(run.path)
    diary = [] if life is None else life.diary.entries
    if run.of.is_table:  # its own log is all there is: what was known before stays, and each step is possible
        assert there[: len(run.entries)] == run.entries or fleet, "the log is not what it was"
        for step in there:
            possible(run.of.law, step)
        return there
    expected = [*run.entries, *diary]
    if fleet or run.was_fleet:
        surplus = Counter(there) - Counter(expected)
        assert not surplus, f"the log has what never happened: {list(surplus)[:3]}"
        assert not Counter(run.entries) - Counter(there), "what was acknowledged is not there any more"
        gone = len(expected) - len(there)
        most = unknown + WALKERS  # those in flight at the end
        assert killed or gone <= most, f"{gone} samples are missing, {unknown} are said to be unknown"
    elif killed:
        assert there == expected[: len(there)], first_difference(there, expected)
        assert len(there) >= len(run.entries), "what was acknowledged is not there any more"
    else:
        assert there == expected, first_difference(there, expected)
    return there


def possible(law, entry):
    """A step or a reset has a positive probability."""
    if isinstance(entry, Step):
        following = {s for probability, s, _ in law.moves[entry.state][entry.action] if probability > 0}
        assert entry.next_state in following, f"{entry} is impossible"


def first_difference(there, expected):
    for number, (a, b) in enumerate(zip(there, expected, strict=False)):
        if a != b:
            return f"entry {number}: the log says {a}, the diary says {b}"
    return f"the log has {len(there)} entries, the diary {len(expected)}"


def verified(run):
    """`verify` confirms an honest run; of an unfinished one, it finds nothing wrong."""
    found = gosprl.runs.verify(run.path, **run.of.given)
    wrong = [f"{check.name}: {check.text}" for check in found.checks if check.ok is False]
    assert not wrong, f"an honest run is refused: {wrong}"
    if run.whole:
        unknown = [f"{check.name}: {check.text}" for check in found.checks if check.ok is None]
        assert found.ok, f"an honest run is not confirmed: {unknown}"


def shows(run):
    """`show` has the numbers of the log, finds nothing damaged, and shows a certificate only of this log."""
    shown = gosprl.runs.show(run.path)
    repr(shown)
    assert not shown.problems, f"show finds damage in an honest run: {shown.problems}"
    steps = sum(isinstance(entry, Step) for entry in run.entries)
    if not run.was_fleet:
        assert shown.facts["steps"] == steps, "show counts other steps"


def result_holds(run, result):
    """Counts are those of the log and of the data; what is missing is what the need says; the sets hold the truth."""
    entries = run.all_entries()
    visits, resets = counted(entries)
    mine = Counter({pair: int(n) for pair, n in pairs(result).items() if n})
    assert mine == visits, f"counts: {dict(mine - visits)} too many, {dict(visits - mine)} too few"
    need_holds(run, result, visits, resets, discovered(entries))
    if result.guarantee.level is not None:
        sets_hold(run.of.law, result.model)


def pairs(result):
    """The counts of a result by observation and action value."""
    model, values = result.model, result.model.actions
    there = np.argwhere(result.counts)
    return {(model.states[int(s)], plain(values, int(a))): result.counts[s, a] for s, a in there}


def plain(values, a):
    return values[a] if a < len(values) else a


def need_holds(run, result, visits, resets, states):
    """What is met, by hand, for a need of n samples of each action of each state discovered."""
    n, law = run.asked["need"], run.of.law
    if not states:
        assert not result.met, "met, though nothing was seen"
        return
    if run.of.is_table:
        states = set(range(law.states))
    missing = {(s, a) for s in states for a in law.offered(number(s)) if visits[s, a] < n}
    reset = (run.asked.get("resets") == "anytime" or ended(run)) and resets < n
    seen = discovered(run.entries)  # what a state offers is known when the walk comes there: data do not say it
    unknown = any(visits[s, a] == 0 for s in states - seen for a in range(law.actions) if not law.moves[number(s)][a])
    text = f"met is {result.met}, unmet {result.unmet}; by hand {sorted(missing, key=str)[:5]}, resets {resets} of {n}"
    if result.met:
        assert not missing, text
        assert not reset, text
    else:  # of a fleet, samples after one that is in flight are there, and are not committed yet
        assert missing or reset or unknown or run.was_fleet, text


def ended(run):
    """Whether an episode was seen to end, before the last step."""
    return any(isinstance(e, Step) and (e.terminated or e.truncated) for e in run.all_entries()[:-1])


def number(s):
    return int(str(s).split()[-1])


def truth(law, s, a):
    """{(kind, state): probability} of what follows a pair; s None: a reset."""
    if s is None:
        return {("state", state): probability for probability, state in law.starts}
    out = Counter()
    for probability, following, terminated in law.moves[s][a]:
        out["final" if terminated else "state", following] += probability
    return out


def sets_hold(law, model):
    """The true law is in the sets at a level that nothing is outside of."""
    rows = np.flatnonzero((model.visits > 0) & ~model.certain)
    if not rows.size:
        return
    sets = gosprl.KL(DELTA).intervals(model, rows)
    for i, row in enumerate(rows.tolist()):
        s, a = model.rows.pair(row)
        where = None if s == model.states.reset else number(model.states[s])
        left = truth(law, where, a)
        for k in range(sets.ptr[i], sets.ptr[i + 1]):
            p = left.pop(outcome(model.states, int(sets.succ[k])), 0.0)
            low, high = sets.lower[k], sets.upper[k]
            assert low - TINY <= p <= high + TINY, f"({where}, {a}): {p} is outside of [{low:.3f}, {high:.3f}]"
        assert sum(left.values()) <= sets.total[i] + TINY, f"({where}, {a}): unseen {dict(left)} above {sets.total[i]}"


def outcome(states, index):
    """(kind, state) of a state of a model, as `truth` has them."""
    key = states.key(index)
    if key is gosprl.CRASH:
        return "final", CRASHED
    kind = "final" if index in states.finals else "state"
    return kind, number(states.shown(key))


def answer_holds(law, question, answer):
    """An answer that is promised is true."""
    level = answer.guarantee.level
    if level is None:
        return
    model, truth = answer.collected.model, np.array(law.rewards)
    if question == "best_state":
        known = [number(model.states[int(s)]) for s in answer.candidates]
        best = int(np.argmax(truth))
        seen = {number(model.states[i]) for i in model.states.lives}
        assert best in known or best not in seen, f"the best state is {best}, candidates {known}: {answer.guarantee}"
    if question == "estimate_rewards":
        for s, a in np.argwhere(np.isfinite(answer.radius)):
            mean = truth[number(model.states[int(s)])]
            off = abs(answer.rewards[s, a] - mean)
            assert off <= answer.radius[s, a] + TINY, f"the mean reward of {s}, {a} is {mean}: {answer.guarantee}"
    sets_hold(law, model)


def new_draws(run, life):
    """No random number of the run, or of its data, is used again."""
    draws = set(life.diary.draws)
    for other in run.sources:
        again = draws & all_draws(other)
        assert not again, f"{len(again)} random numbers of the data are drawn again"
    again = draws & run.draws
    assert not again, f"{len(again)} random numbers of the run are drawn again"
    if run.of.is_table and run.sources and run.carrier == "one":
        own, theirs = [
            [entry.next_state for entry in entries if isinstance(entry, Step)][:30]
            for entries in (logged(run.path)[0], run.sources[0].entries)
        ]
        assert own != theirs or len(own) < 30, "the data are drawn again"


def all_draws(run):
    return run.draws.union(*(all_draws(source) for source in run.sources))


def untouched(run):
    """Nothing has written to it."""
    there = contents(run.path)
    changed = [name for name in {*there, *run.files} if there.get(name) != run.files.get(name)]
    assert not changed, f"{run.path.name}: changed by a call about something else: {changed}"


def refused(run, life):
    """A damaged run was refused, and not a byte was written."""
    assert isinstance(life.error, GosprlError), "not refused"
    untouched(run)
