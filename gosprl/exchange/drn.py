"""Storm's explicit format DRN: learnt interval MDPs and known dynamics, out and in.

    @type: MDP
    @value_type: double-interval        intervals [low, high]; double: points
    state 0 [r1, r2] init label         with state rewards in the order of @reward_models
        action a0 [r1, r2]              with rewards of the choice
            3 : [0.25,0.5]

Rewards cannot be intervals there, so learnt ones are three structures: reward_lower, reward, reward_upper.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gosprl.exchange.checkers import write_model
from gosprl.exchange.interval import IntervalMDP
from gosprl.exchange.reading import NO_INTERVALS, Given, Lines
from gosprl.mdp.tabular import TabularMDP

TYPES = ("mdp", "dtmc")


def write(model: Any, file: "str | os.PathLike[str]", *, force: bool = False, **options: Any) -> None:
    """Write a model to a DRN file; parameters as in `gosprl.exchange.checkers.write_model`."""
    write_model(save, model, file, force, options)


def save(mdp: IntervalMDP, path: Path) -> None:
    """Write a model to a DRN file."""
    with open(path, "w", encoding="ascii", newline="\n") as stream:
        stream.writelines(_lines(mdp))


def _lines(mdp: IntervalMDP) -> Iterator[str]:
    rewards = mdp.single_rewards()
    yield "".join(f"// {note}\n" for note in mdp.notes)
    yield f"@type: MDP\n@value_type: {'double' if mdp.point else 'double-interval'}\n@parameters\n\n"
    yield f"@reward_models\n{' '.join(rewards)}\n@nr_states\n{mdp.num_states}\n@nr_choices\n{mdp.num_rows}\n@model\n"
    by_state: list[list[str]] = [[] for _ in range(mdp.num_states)]
    for label, states in mdp.labels.items():
        for s in states.tolist():
            by_state[s].append(label)
    none = f"[{', '.join('0' for _ in rewards)}]"
    values = [column.tolist() for column in rewards.values()]
    succ, lower, upper = mdp.succ.tolist(), mdp.lower.tolist(), mdp.upper.tolist()
    first, ptr = mdp.first.tolist(), mdp.ptr.tolist()
    for s in range(mdp.num_states):
        yield " ".join([f"state {s} {none}", *by_state[s]]) + "\n"
        if mdp.names:
            yield f"// {mdp.names[s]}\n"
        for r in range(first[s], first[s + 1]):
            yield f"\taction {mdp.actions[r]} [{', '.join(repr(column[r]) for column in values)}]\n"
            for j in range(ptr[r], ptr[r + 1]):
                yield (
                    f"\t\t{succ[j]} : {lower[j]!r}\n"
                    if mdp.point
                    else f"\t\t{succ[j]} : [{lower[j]!r}, {upper[j]!r}]\n"
                )


def read(file: "str | os.PathLike[str]", *, rewards: str | None = None) -> TabularMDP:
    """Return the MDP of a DRN file; parameters as in `TabularMDP.from_drn`."""
    return given(file).to_mdp(rewards)


def given(file: "str | os.PathLike[str]") -> Given:
    """Return what a DRN file gives."""
    return _Parser(Lines(file, "//")).parse()


class _Parser:
    """The state of reading: where in the file, and what it gave so far."""

    def __init__(self, lines: Lines) -> None:
        self.lines, self.given = lines, Given(lines.path.name)
        self.structures: list[str] = []
        self.claimed: dict[str, int] = {}
        self.targets: set[int] = set()  # of the choice at hand
        self.type = ""

    def parse(self) -> Given:
        body = iter(self.lines)
        self._header(body)
        for line in body:
            word, _, rest = line.partition(" ")
            if word == "state":
                self._state(rest)
            elif word == "action":
                self._action(rest)
            elif ":" in line:
                self._entry(line)
            else:
                self.lines.fail("a state, an action or a transition `successor : probability`", line)
        self._end()
        return self.given

    def _header(self, body: Iterator[str]) -> None:
        wanted: str | None = None
        for line in body:
            if line == "@model":
                if not self.type:
                    self.lines.fail("@type before @model")
                return
            if line.startswith("@"):
                wanted = self._field(line)
            elif wanted == "@reward_models":
                self.structures = line.split()
                if len(set(self.structures)) != len(self.structures):
                    self.lines.fail("distinct reward models", line)
            elif wanted in ("@nr_states", "@nr_choices"):
                self.claimed[wanted] = self.lines.whole(line, f"the number after {wanted}")
            elif wanted == "@parameters":
                self.lines.fail("no parameters: a TabularMDP has numbers only", line)
            else:
                self.lines.fail("a DRN file: lines that begin with @, then @model", line)
        self.lines.fail("a DRN file with @model", "the end of the file")

    def _field(self, line: str) -> str:
        name, colon, value = (part.strip() for part in line.partition(":"))
        if name == "@type":
            if value.lower() not in TYPES:
                self.lines.fail(f"@type: one of {', '.join(TYPES)}", value)
            self.type = value.lower()
        elif name == "@value_type":
            if "interval" in value:
                self.lines.fail(f"@value_type: double or rational: {NO_INTERVALS}", value)
            if value not in ("double", "rational"):
                self.lines.fail("@value_type: double or rational", value)
        elif name not in ("@parameters", "@reward_models", "@nr_states", "@nr_choices", "@placeholders"):
            self.lines.fail("a field of DRN", line)
        elif colon:
            self.lines.fail(f"{name} alone on its line", line)
        return name

    def _rewards(self, text: str) -> tuple[list[float], list[str]]:
        """Return the rewards at the beginning of a line, and the words after them."""
        text = text.strip()
        if not text.startswith("["):
            return [], text.split()
        inside, bracket, rest = text[1:].partition("]")
        parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
        if not bracket or len(parts) != len(self.structures):
            self.lines.fail(f"[{len(self.structures)} rewards], one for each reward model", text)
        return [self.lines.real(part, "a reward") for part in parts], rest.split()

    def _state(self, rest: str) -> None:
        number, _, rest = rest.partition(" ")
        s = self.lines.whole(number, "the number of a state")
        if s != self.given.states:
            self.lines.fail(f"state {self.given.states}, as states are in order", number)
        self._end_choices()
        self.given.states += 1
        values, labels = self._rewards(rest)
        for name, value in zip(self.structures, values, strict=False):
            if value:
                self.given.state_rewards.setdefault(name, {})[s] = value
        for label in labels:
            self.given.labels.setdefault(label, []).append(s)
            if len(self.given.labels[label]) > 1 and self.given.labels[label][-2] == s:
                self.lines.fail("each label once", label)

    def _end_choices(self) -> None:
        """Check that the choice and the state at hand are complete."""
        given = self.given
        if given.choice_state and not self.targets:
            self.lines.fail(f"transitions of state {given.choice_state[-1]}, action {given.choice_action[-1]}")
        if given.states and (not given.choice_state or given.choice_state[-1] != given.states - 1):
            self.lines.fail(f"an action of state {given.states - 1}")

    def _action(self, rest: str) -> None:
        given = self.given
        if not given.states:
            self.lines.fail("a state before its actions", f"action {rest}")
        if given.choice_state and given.choice_state[-1] == given.states - 1 and not self.targets:
            self.lines.fail(f"transitions of action {given.choice_action[-1]}", f"action {rest}")
        name, _, rest = rest.strip().partition(" ")
        values, words = self._rewards(rest)
        if words:
            self.lines.fail("an action: its name and [rewards]", " ".join(words))
        for structure, value in zip(self.structures, values, strict=False):
            if value:
                given.rewards.setdefault(structure, {})[len(given.choice_state)] = value
        given.choice_state.append(given.states - 1)
        given.choice_action.append("" if name == "__NOLABEL__" else name)
        self.targets = set()

    def _entry(self, line: str) -> None:
        given = self.given
        number, _, value = (part.strip() for part in line.partition(":"))
        target = self.lines.whole(number, "the number of the next state")
        if not given.choice_state or given.choice_state[-1] != given.states - 1:
            self.lines.fail("an action before its transitions", line)
        if target in self.targets:
            self.lines.fail("each next state once in a choice", number)
        probability = self.lines.probability(value)
        self.targets.add(target)
        given.entry_choice.append(len(given.choice_state) - 1)
        given.entry_succ.append(target)
        given.entry_prob.append(probability)

    def _end(self) -> None:
        self._end_choices()
        given = self.given
        for name in self.structures:  # those without an entry are 0 everywhere
            given.rewards.setdefault(name, {})
        for field, number in (("@nr_states", given.states), ("@nr_choices", len(given.choice_state))):
            if self.claimed.get(field, number) != number:
                self.lines.fail(f"{self.claimed[field]} by {field}: the file is cut off or damaged", number)
        if given.entry_succ and max(given.entry_succ) >= given.states:
            self.lines.fail(f"next states below {given.states}", max(given.entry_succ))
