"""PRISM's explicit files and its language: learnt interval MDPs and known dynamics out, explicit files in.

    model.tra       "states choices transitions", then "s choice s_next probability action"; intervals are [low,high]
    model.sta       "(s)", then "s:(s)"
    model.lab       0="init" 1="deadlock" 2=..., then "s: labels"
    model1.trew     # Reward structure "steps", "states choices entries", then "s choice s_next reward"
    README.txt      what a reader has to know: older versions of PRISM refuse comments in the first three files

In the language (`.prism`, for small models) notes are comments, and a state is the value of the variable s.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gosprl.errors import InputError
from gosprl.exchange.checkers import write_model
from gosprl.exchange.interval import IntervalMDP
from gosprl.exchange.reading import Given, Lines
from gosprl.mdp.tabular import TabularMDP

LANGUAGE = (".prism", ".nm", ".pm")
MOST = 100_000  # transitions of a model in the language, which takes long to parse
_LABEL = re.compile(r'(\d{1,9})="([A-Za-z_][A-Za-z0-9_]*)"', re.ASCII)
_STRUCTURE = re.compile(r'# Reward structure "(\w+)"\Z', re.ASCII)


def write(model: Any, file: "str | os.PathLike[str]", *, force: bool = False, **options: Any) -> None:
    """Write a model to a new directory of explicit files, or to one file in PRISM's language.

    Parameters
    ----------
    model, force, options
        As in `gosprl.exchange.checkers.write_model`.
    file
        A name that ends in .prism, .nm or .pm for the language; else a directory, which must be new.
    """
    write_model(save, model, file, force, options)


def save(mdp: IntervalMDP, path: Path) -> None:
    """Write a model to explicit files in a directory, or to a file in the language."""
    if path.suffix.lower() in LANGUAGE:
        if len(mdp.succ) > MOST:
            raise InputError(
                f"file: expected at most {MOST} transitions in PRISM's language, got {len(mdp.succ)}; give the name of "
                "a directory for explicit files"
            )
        _save(path, _program(mdp))
        return
    path.mkdir()
    _save(path / "model.tra", _transitions(mdp))
    _save(path / "model.sta", _states(mdp))
    _save(path / "model.lab", _labels(mdp))
    for number, (name, values) in enumerate(mdp.single_rewards().items(), 1):
        _save(path / f"model{number}.trew", _rewards(mdp, name, values.tolist()))
    _save(path / "README.txt", (f"{line}\n" for line in _described(mdp)))


def _save(path: Path, lines: Iterator[str]) -> None:
    with open(path, "w", encoding="ascii", newline="\n") as stream:
        stream.writelines(lines)


def _described(mdp: IntervalMDP) -> Iterator[str]:
    yield from mdp.notes
    yield from (f"state {s}: {name}" for s, name in enumerate(mdp.names))


def _entries(mdp: IntervalMDP) -> Iterator[tuple[int, int, int, list[tuple[int, str]]]]:
    """Yield (row, state, choice, [(successor, probability)])."""
    succ, lower, upper = mdp.succ.tolist(), mdp.lower.tolist(), mdp.upper.tolist()
    first, ptr = mdp.first.tolist(), mdp.ptr.tolist()
    for s in range(mdp.num_states):
        for choice, r in enumerate(range(first[s], first[s + 1])):
            entries = range(ptr[r], ptr[r + 1])
            if mdp.point:
                yield r, s, choice, [(succ[j], repr(lower[j])) for j in entries]
            else:
                yield r, s, choice, [(succ[j], f"[{lower[j]!r},{upper[j]!r}]") for j in entries]


def _transitions(mdp: IntervalMDP) -> Iterator[str]:
    yield f"{mdp.num_states} {mdp.num_rows} {len(mdp.succ)}\n"
    for r, s, choice, entries in _entries(mdp):
        for target, probability in entries:
            yield f"{s} {choice} {target} {probability} {mdp.actions[r]}\n"


def _states(mdp: IntervalMDP) -> Iterator[str]:
    yield "(s)\n"
    yield from (f"{s}:({s})\n" for s in range(mdp.num_states))


def _labels(mdp: IntervalMDP) -> Iterator[str]:
    names = ["init", "deadlock", *(name for name in mdp.labels if name not in ("init", "deadlock"))]
    yield " ".join(f'{i}="{name}"' for i, name in enumerate(names)) + "\n"
    by_state: dict[int, list[int]] = {}
    for i, name in enumerate(names):
        for s in mdp.labels[name].tolist() if name in mdp.labels else ():
            by_state.setdefault(s, []).append(i)
    for s in sorted(by_state):
        yield f"{s}: {' '.join(map(str, by_state[s]))}\n"


def _rewards(mdp: IntervalMDP, name: str, values: list[float]) -> Iterator[str]:
    lines = [
        f"{s} {choice} {target} {values[r]!r}\n"
        for r, s, choice, entries in _entries(mdp)
        if values[r]
        for target, _ in entries
    ]
    yield f'# Reward structure "{name}"\n# Transition rewards\n{mdp.num_states} {mdp.num_rows} {len(lines)}\n'
    yield from lines


def _program(mdp: IntervalMDP) -> Iterator[str]:
    yield from (f"// {line}\n" for line in _described(mdp))
    yield f"mdp\n\nmodule model\n\ts : [0..{max(1, mdp.num_states - 1)}] init {mdp.initial};\n"
    for r, s, _, entries in _entries(mdp):
        update = " + ".join(f"{probability} : (s'={target})" for target, probability in entries)
        yield f"\t[{mdp.actions[r]}] s={s} -> {update};\n"
    yield "endmodule\n"
    for name, states in mdp.labels.items():
        if name not in ("init", "deadlock"):
            where = " | ".join(f"s={s}" for s in states.tolist()) or "false"
            yield f'\nlabel "{name}" = {where};'
    for name, values in mdp.single_rewards().items():
        yield f'\n\nrewards "{name}"\n'
        for r, s, _, _ in _entries(mdp):
            yield f"\t[{mdp.actions[r]}] s={s} : {values[r].item()!r};\n"
        yield "endrewards"
    yield "\n"


def read(*files: "str | os.PathLike[str]", rewards: str | None = None) -> TabularMDP:
    """Return the MDP of explicit files; see `TabularMDP.from_prism`.

    Parameters
    ----------
    *files
        A directory, or files.
    rewards
        The reward structure to take.
    """
    return given(*files).to_mdp(rewards)


def given(*files: "str | os.PathLike[str]") -> Given:
    """Return what explicit files give; parameters as in `read`."""
    kinds = _by_kind(files)
    found, places = _read_transitions(kinds[".tra"][0])
    if ".lab" in kinds:
        _read_labels(kinds[".lab"][0], found)
    found.labels.setdefault("init", [0] if ".lab" not in kinds else [])
    if ".sta" in kinds:
        _read_states(kinds[".sta"][0], found)
    for kind in (".srew", ".trew"):
        for number, path in enumerate(kinds.get(kind, ()), 1):
            (_read_state_rewards if kind == ".srew" else _read_transition_rewards)(path, found, places, str(number))
    return found


def _by_kind(files: tuple[Any, ...]) -> dict[str, list[Path]]:
    paths = [Path(file) for file in files]
    if len(paths) == 1 and paths[0].is_dir():
        paths = sorted(path for path in paths[0].iterdir() if path.suffix in (".tra", ".sta", ".lab", ".srew", ".trew"))
    kinds: dict[str, list[Path]] = {}
    for path in paths:
        kinds.setdefault(path.suffix, []).append(path)
    unknown = sorted(set(kinds) - {".tra", ".sta", ".lab", ".srew", ".trew"})
    if unknown:
        raise InputError(f"files: expected .tra, .sta, .lab, .srew and .trew files, got {unknown[0]!r:.80}")
    for kind in (".tra", ".sta", ".lab"):
        found = [path.name for path in kinds.get(kind, ())]
        if len(found) > 1 or (kind == ".tra" and not found):
            raise InputError(f"files: expected one {kind} file, got {found}")
    return kinds


Places = dict[tuple[int, int], int]  # (state, choice) -> number of the choice in the file


def _read_transitions(path: Path) -> tuple[Given, Places]:
    lines = Lines(path, "#")
    body = iter(lines)
    header = [lines.whole(word, "a header of numbers: states, choices, transitions") for word in _next(lines, body)]
    if len(header) not in (2, 3):
        lines.fail("a header `states choices transitions`, or without choices for a Markov chain", header)
    chain, (S, T) = len(header) == 2, (header[0], header[-1])
    given, places, seen = Given(path.name), Places(), set()
    for line in body:
        words = line.split()
        if chain:
            words[1:1] = ["0"]
        if not 4 <= len(words) <= 5:
            lines.fail("`s choice s_next probability [action]`", line)
        s, target = lines.whole(words[0], "a state", S), lines.whole(words[2], "a next state", S)
        choice = lines.whole(words[1], "a choice")
        if (s, choice) not in places:
            if given.choice_state and s < given.choice_state[-1]:
                lines.fail("states in order", line)
            places[s, choice] = len(given.choice_state)
            given.choice_state.append(s)
            given.choice_action.append(words[4] if len(words) == 5 else "")
        row = places[s, choice]
        if given.choice_action[row] != (words[4] if len(words) == 5 else ""):
            lines.fail(f"one action for choice {choice} of state {s}", words[4:])
        if (row, target) in seen:
            lines.fail("each next state once in a choice", line)
        seen.add((row, target))
        given.entry_choice.append(row)
        given.entry_succ.append(target)
        given.entry_prob.append(lines.probability(words[3]))
    claimed = (S, S if chain else header[1], T)
    got = (len(set(given.choice_state)), len(places), len(given.entry_prob))
    if claimed != got:
        lines.fail(f"{claimed} states with choices, choices and transitions by the header", got)
    given.states, given.chain = S, chain
    return given, places


def _next(lines: Lines, body: Iterator[str]) -> list[str]:
    line = next(body, None)
    if line is None:
        lines.fail("a header", "an empty file")
    return line.split()


def _read_labels(path: Path, given: Given) -> None:
    lines = Lines(path, "#")
    body = iter(lines)
    header = " ".join(_next(lines, body))
    found = {int(number): name for number, name in _LABEL.findall(header)}
    if _LABEL.sub("", header).strip() or len(set(found.values())) != len(_LABEL.findall(header)):
        lines.fail('distinct labels such as 0="init" 1="deadlock"', header)
    given.labels = {name: [] for name in found.values() if name != "deadlock"}
    last = -1
    for line in body:
        state, colon, rest = line.partition(":")
        s = lines.whole(state.strip(), "a state", given.states)
        if not colon or s <= last:
            lines.fail("`state: labels` with increasing states", line)
        last = s
        numbers = [lines.whole(word, "the number of a label") for word in rest.split()]
        for number in numbers:
            if number not in found or numbers.count(number) > 1:
                lines.fail(f"labels out of {sorted(found)}, each once", line)
            if found[number] != "deadlock":
                given.labels[found[number]].append(s)


def _read_states(path: Path, given: Given) -> None:
    """Check that the file has as many states; their variables have no place in a `TabularMDP`."""
    lines = Lines(path, "#")
    body = iter(lines)
    if not "".join(_next(lines, body)).startswith("("):
        lines.fail("the names of the variables in parentheses")
    count = 0
    for line in body:
        if not line.startswith(f"{count}:"):
            lines.fail(f"`{count}:(values)`", line)
        count += 1
    if count != given.states:
        lines.fail(f"{given.states} states, as the .tra file has", count)


def _rewards_header(lines: Lines, body: Iterator[str], number: str, sizes: tuple[int, ...]) -> tuple[str, int]:
    """Return the name of the reward structure and the number of entries claimed."""
    header = [lines.whole(word, "a header of numbers") for word in _next(lines, body)]
    if tuple(header[:-1]) != sizes:
        lines.fail(f"a header that begins with {sizes}, as the .tra file has, then the entries", header)
    names = [found[1] for comment in lines.comments if (found := _STRUCTURE.match(comment))]
    return names[0] if names else number, header[-1]


def _read_state_rewards(path: Path, given: Given, places: Places, number: str) -> None:
    lines = Lines(path, "#")
    body = iter(lines)
    name, claimed = _rewards_header(lines, body, number, (given.states,))
    values = given.state_rewards.setdefault(name, {})
    for line in body:
        words = line.split()
        if len(words) != 2:
            lines.fail("`state reward`", line)
        s = lines.whole(words[0], "a state", given.states)
        if s in values:
            lines.fail("each state once", line)
        values[s] = lines.real(words[1], "a reward")
    if len(values) != claimed:
        lines.fail(f"{claimed} entries by the header", len(values))


def _read_transition_rewards(path: Path, given: Given, places: Places, number: str) -> None:
    lines = Lines(path, "#")
    body = iter(lines)
    sizes = (given.states,) if given.chain else (given.states, len(places))
    name, claimed = _rewards_header(lines, body, number, sizes)
    found: dict[int, dict[int, float]] = {}
    count = 0
    for line in body:
        count += 1
        words = line.split()
        if given.chain:
            words[1:1] = ["0"]
        if len(words) != 4:
            lines.fail("`s choice s_next reward`", line)
        s, choice = lines.whole(words[0], "a state", given.states), lines.whole(words[1], "a choice")
        target = lines.whole(words[2], "a next state", given.states)
        row = places.get((s, choice), -1)
        if row < 0 or target in found.setdefault(row, {}):
            lines.fail("transitions of the .tra file, each once", line)
        found[row][target] = lines.real(words[3], "a reward")
    if count != claimed:
        lines.fail(f"{claimed} entries by the header", count)
    given.rewards[name] = _means(given, found)


def _means(given: Given, found: dict[int, dict[int, float]]) -> dict[int, float]:
    """Return the mean reward of each choice; the common value, bit for bit, if all its transitions have one."""
    law: dict[int, dict[int, float]] = {}
    for row, target, probability in zip(given.entry_choice, given.entry_succ, given.entry_prob, strict=True):
        if row in found:
            law.setdefault(row, {})[target] = probability
    means = {}
    for row, values in found.items():
        strange = set(values) - set(law.get(row, ()))
        if strange:
            raise InputError(
                f"{given.name}: state {given.choice_state[row]} has a reward for the next state {min(strange)}, to "
                "which it has no transition"
            )
        if len(values) == len(law[row]) and len(set(values.values())) == 1:
            means[row] = next(iter(values.values()))
        else:
            means[row] = sum(law[row][target] * value for target, value in values.items())
    return means
