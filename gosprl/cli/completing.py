"""What the shell completes: names that a command accepts, beside verbs, options and files (Typer does those)."""

from collections.abc import Callable, Iterable

Complete = Callable[[str], list[str]]


def _among(names: Callable[[], Iterable[str]]) -> Complete:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _environments() -> list[str]:
    import gymnasium

    from gosprl import envs
    from gosprl.cli.domains import DOMAINS

    return sorted({*DOMAINS, *envs.names()}) + sorted(gymnasium.registry)


def _strategies() -> list[str]:
    from gosprl.strategies import STRATEGIES

    return list(STRATEGIES)


def _experiments() -> list[str]:
    from gosprl.experiments.catalogue import EXPERIMENTS

    return ["all", *EXPERIMENTS]


environments, strategies, experiments = _among(_environments), _among(_strategies), _among(_experiments)


def several(incomplete: str) -> list[str]:
    """Complete the last of several strategies with commas between."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in strategies(last)]
