"""Verdicts: what a probe found, a line each, and how it is known.

- proved: with probability 1 - delta at least, if the system is Markov; left out where it is proved not to be. Of
  history: a Markov system is said to be none with a probability of at most `level`.
- seen: true of the walk that was made; of the system, only as far as the walk shows it.
- estimated: computed from what was seen, with nothing promised.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gosprl.probing.findings import Spread

if TYPE_CHECKING:
    from gosprl.probing.probe import Probe

LISTED = 3  # pairs or states that a verdict names
NOTICED = 0.5  # unseen mass above which the way to less of it is named
NOTHING = 0.99  # a bound on a probability from which on it says nothing


class Verdict(NamedTuple):
    """One line of a report."""

    about: str  # "" if it belongs to the line before
    text: str
    known: str  # "proved" | "seen" | "estimated"

    def __str__(self) -> str:
        return f"{self.about:<9} {self.text} ({self.known})"


def verdicts(probe: "Probe") -> Iterator[Verdict]:
    """Yield what a probe found."""
    if probe.failure:
        yield Verdict("failure", probe.failure, "seen")
    elif not probe.steps:
        yield Verdict("steps", f"none was made ({probe.stop}), so nothing is known", "seen")
    if probe.steps:
        for part in (_size, _outcomes, _endings, _rewards, _offers, _history, _classes, _cost, _forecast):
            yield from part(probe)


def _size(probe: "Probe") -> Iterator[Verdict]:
    size = probe.size
    tried = "all tried" if size.visited == size.pairs else f"{size.visited:,} of them tried"
    new = f"{size.late:,} new states" if size.late > 1 else "one new state" if size.late else "no new state"
    more = ", so there may well be more" if size.late else ""
    text = f"{_states(size.states)}, {size.actions} actions, {size.pairs:,} pairs, {tried}"
    yield Verdict("states", f"{text}; {new} in the last {size.late_steps:,} steps{more}", "seen")
    if not probe.of_discovered:
        return
    way = "; collecting with unseen=0.05 goes on until that is small" if size.unseen > NOTICED else ""
    if probe.aliasing.found:
        return
    if size.unseen > NOTHING:
        text = "some pair was tried so rarely that nothing is proved of what else it leads to"
        yield Verdict("", f"{text}{way}", "seen")
    else:
        text = f"no pair tried leads to states never seen with a probability above {size.unseen:.2g}"
        yield Verdict("", f"{text}{way}", "proved")


def _outcomes(probe: "Probe") -> Iterator[Verdict]:
    found = probe.outcomes
    if not found.pairs:
        yield Verdict("outcomes", "no pair was tried twice", "seen")
        return
    kind = "random" if found.deterministic < found.pairs else "deterministic"
    text = f"{kind}: {_share(found.deterministic, found.pairs)} pairs tried twice or more always led to one next state"
    if found.deterministic < found.pairs:
        text += f"; next states of a pair: {_spread(found.next_states)}"
    yield Verdict("outcomes", text, "seen")
    if found.deterministic and found.bound <= NOTHING and not probe.aliasing.found:
        text = f"none of these {found.deterministic:,} leads elsewhere with a probability above {found.bound:.2g}"
        yield Verdict("", text, "proved")


def _endings(probe: "Probe") -> Iterator[Verdict]:
    found = probe.endings
    parts = []
    if found.steps_to_termination is not None:
        crashes = f", {found.crashed:,} of them crashes of the system" if found.crashed else ""
        parts.append(f"{found.terminated:,} terminations{crashes}, after {_spread(found.steps_to_termination)} steps")
    if found.time_limit is not None:
        parts.append(f"a time limit: all {found.truncated:,} truncations came after {found.time_limit:,} steps")
    elif found.steps_to_truncation is not None:
        parts.append(f"{found.truncated:,} truncations, after {_spread(found.steps_to_truncation)} steps")
    yield Verdict("endings", "; ".join(parts) or "no episode ended", "seen")
    if found.resets == 1:
        text = "one reset only, so nothing is known of other starts"
    elif found.starts == 1:
        text = f"all {found.resets:,} resets led to the same state"
    else:
        text = f"{found.starts:,} different ones in {found.resets:,} resets"
    yield Verdict("starts", text, "seen")


def _rewards(probe: "Probe") -> Iterator[Verdict]:
    found = probe.rewards
    if found is None:
        return
    if found.range.least == found.range.most:
        yield Verdict("rewards", f"always {found.mean:g}", "seen")
        return
    text = f"{found.range.least:g} to {found.range.most:g}, mean {found.mean:.3g}"
    same = f"{_share(found.deterministic, found.pairs)} pairs tried twice or more always paid the same"
    yield Verdict("rewards", f"{text}; {same}" if found.pairs else text, "seen")


def _offers(probe: "Probe") -> Iterator[Verdict]:
    if probe.aliased_offers:
        names = ", ".join(probe.aliased_offers[:LISTED])
        text = f"{len(probe.aliased_offers):,} states do not always offer the same actions, such as {names}"
        yield Verdict("offers", f"{text}: the observation does not tell everything", "seen")
    elif probe.masked:
        yield Verdict("offers", "some states offer only some of the actions, always the same ones", "seen")


def _history(probe: "Probe") -> Iterator[Verdict]:
    test = probe.aliasing
    if not test.tested:
        yield Verdict("history", "no pair had several outcomes, so none depends on history", "seen")
    elif not test.found:
        text = f"no sign that the outcome of any of {test.tested:,} random pairs depends on history"
        yield Verdict("history", text, "seen")
    else:
        which = f"{test.proved:,} of {test.tested:,} random pairs" if test.proved else "some pair"
        text = f"not Markov: the outcome of {which} depends on more than observation and action"
        yield Verdict("history", f"{text}; give more of the state in the observation, or by key=", "proved")
        for pair in test.pairs[:LISTED]:
            yield Verdict("", pair.text, "proved" if pair.proved else "seen")
    if test.rewards_found:
        yield Verdict("history", "rewards depend on history, not only on state, action and next state", "proved")
        for pair in test.rewards[:LISTED]:
            yield Verdict("", pair.text, "proved" if pair.proved else "seen")


def _classes(probe: "Probe") -> Iterator[Verdict]:
    found = probe.classes
    if found.communicating:
        again = ", by way of endings and resets" if probe.endings.terminated else ""
        yield Verdict("classes", f"every state was seen to lead to every other{again}", "seen")
    else:
        text = f"{found.number:,} classes of states that lead to each other, the largest of {_states(found.largest)}"
        yield Verdict("classes", text, "seen")
    way = "only truncations leave it" if probe.endings.truncated else 'resets="anytime" or horizon= would leave it'
    for trap in found.traps[:LISTED]:
        text = f"{_states(trap.states)} never left in {trap.tried:,} tries of each action: {', '.join(trap.names)}"
        yield Verdict("trap", f"{text}; {way}", "seen")
        if trap.bound <= NOTHING and not probe.aliasing.found:
            text = f"each of its actions leads out with a probability of at most {trap.bound:.2g}"
            yield Verdict("", text, "proved")


def _cost(probe: "Probe") -> Iterator[Verdict]:
    cost = probe.cost
    text = f"{_seconds(cost.seconds)} a step, {_seconds(cost.system)} of them the system's (median)"
    yield Verdict("time", f"{text}; a reset takes {_seconds(cost.reset)}", "seen")
    if cost.leaks:
        text = f"the process grew by {cost.memory / 1e3:,.1f} kB a step though hardly any state was new"
        yield Verdict("memory", f"{text}: the system may leak", "seen")


def _forecast(probe: "Probe") -> Iterator[Verdict]:
    expected = probe.forecast
    need = f"{probe.need:,} samples of every pair" if isinstance(probe.need, int) else "what is needed"
    if probe.failure and not probe.met:
        yield Verdict("forecast", f"collecting {need} would fail as this walk did", "estimated")
    elif not math.isfinite(expected.steps):
        yield Verdict("forecast", f"collecting {need} would not end: {expected.how}", "estimated")
    else:
        text = f"collecting {need}: {expected.steps:,.0f} steps ({expected.low:,.0f} to {expected.high:,.0f})"
        resets = f" and {expected.resets:,.0f} resets" if expected.resets >= 1 else ""
        about = "much less than" if probe.cost.faster else "about"
        yield Verdict("forecast", f"{text}{resets}, {about} {_seconds(expected.seconds)}", "estimated")
        yield Verdict("", f"from {expected.how}", "estimated")
        pairs = f" and {expected.pairs:,.0f} pairs" if expected.pairs else ""  # a need of states is met by any action
        text = f"for {_states(round(expected.states))}{pairs}; the guarantee would be:"
        if probe.aliasing.found:
            yield Verdict("", f"{text} none, since it is for Markov systems", "estimated")
        else:
            yield Verdict("", f"{text} {expected.guarantee}", "estimated")


def _share(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole else f"{part:,} of {whole:,}" if part else f"none of {whole:,}"


def _spread(numbers: Spread) -> str:
    if numbers.least == numbers.most:
        return f"{numbers.least:,.0f}"
    return f"{numbers.least:,.0f} to {numbers.most:,.0f} (median {numbers.median:,.0f})"


def _states(number: int) -> str:
    return "one state" if number == 1 else f"{number:,} states"


def _seconds(seconds: float) -> str:
    """Return a time in a unit that fits."""
    for most, times, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min")):
        if seconds < most:
            return f"{times * seconds:.2g} {unit}" if times * seconds < 10 else f"{times * seconds:.0f} {unit}"
    return f"{seconds / 3600:,.1f} h"
