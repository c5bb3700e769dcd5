"""Known dynamics from file to file: Storm's DRN, PRISM's explicit files, UMB.

Probabilities keep every bit; labels, all reward structures and the names of actions go along.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gosprl.errors import InputError
from gosprl.exchange import drn, prism, umb
from gosprl.exchange.appearing import appearing
from gosprl.exchange.checkers import Save
from gosprl.exchange.interval import IntervalMDP, known, same
from gosprl.exchange.labelling import NAME
from gosprl.exchange.reading import Given

WRITERS: dict[str, Save] = {"drn": drn.save, "prism": prism.save, "umb": umb.save}
READERS: dict[str, Callable[[Path], Given]] = {
    "drn": drn.given,
    "prism": lambda path: prism.given(*beside(path)),
    "umb": umb.given,
}
ENDINGS = {".drn": "drn", ".umb": "umb", ".tra": "prism"}


def model_format(path: Path) -> str | None:
    """Return the format of a file or directory with known dynamics; None if it is something else."""
    if path.suffix.lower() in prism.LANGUAGE:
        raise InputError(
            f"source: {path.name} is in PRISM's language, which is written but not read; let PRISM make explicit files "
            f"of it (prism {path.name} -exportmodel model.all), or Storm a DRN file (storm --prism {path.name} "
            "--exportbuild model.drn)"
        )
    if path.is_dir():
        return "prism" if any(path.glob("*.tra")) else None
    return ENDINGS.get(path.suffix.lower())


def convert_model(source: Path, read: str, file: Path, written: str, force: bool) -> None:
    """Write known dynamics in another format.

    Parameters
    ----------
    source, read
        Where they are, and the format.
    file, written
        What is written, and the format.
    force
        Whether an existing file is replaced.
    """
    mdp = complete(READERS[read](source))
    with appearing(file, force) as temporary:
        WRITERS[written](mdp, temporary)


def beside(path: Path) -> list[Path]:
    """Return the explicit files that belong to a .tra file: those of the same name beside it; a directory is itself."""
    if path.is_dir():
        return [path]
    others = [path.with_suffix(ending) for ending in (".sta", ".lab")]
    rewards = sorted(part for ending in ("srew", "trew") for part in path.parent.glob(f"*.{ending}"))
    return [path, *(other for other in others if other.is_file()), *(r for r in rewards if _numbered(r, path))]


def _numbered(rewards: Path, path: Path) -> bool:
    rest = rewards.stem.removeprefix(path.stem)
    return rewards.stem.startswith(path.stem) and (not rest or rest.isdigit())


def complete(given: Given) -> IntervalMDP:
    """Return what a file gives, with all its rewards, and with the names of its actions where all formats take them."""
    plain = known(given.dynamics())
    names = [given.choice_action[i] for i in given.order.tolist()]
    states = [given.choice_state[i] for i in given.order.tolist()]
    usable = all(map(NAME.match, names)) and len(set(zip(states, names, strict=True))) == len(names)
    rewards = {name if NAME.match(name) else f"r{name}": same(given.row_rewards(name)) for name in given.structures}
    for name in rewards:
        if not NAME.match(name):
            raise InputError(f"{given.name}: expected names of rewards of letters, digits and _, got {name[1:]!r:.80}")
    return replace(plain, actions=names if usable else plain.actions, rewards={**plain.rewards, **rewards})
