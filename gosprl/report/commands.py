"""The command that runs a collection again, from the manifest of its run."""

import shlex
from collections.abc import Mapping
from typing import Any

from gosprl.errors import GosprlError
from gosprl.runs import describing

OPTIONS = ("confidence", "scale", "linear_scale", "delta", "goals", "reach", "planning")  # of strategies, as --options
AROUND = ("resets", "reset_cost", "horizon", "max_states", "unseen")
EACH = ("of each pair", "of each discovered")


def command_of(manifest: Mapping[str, Any], certificate: Mapping[str, Any]) -> tuple[str, str]:
    """Return ("sh", a command line) if one does it, or ("python", a call)."""
    leg, source = manifest["legs"][-1], manifest["system"]["source"] or {}
    options = _changed(leg["strategy"])
    around = _declared(leg["around"], manifest["system"])
    limits = {"max_steps": certificate["steps"]} if certificate.get("stop") == "max_steps" else {}
    simple = leg["application"] is None and leg["need"].keys() & set(EACH) and "data" not in manifest
    if simple and source and options is not None and set(options) <= set(OPTIONS):
        need = next(iter(leg["need"].values()))
        words = ["gosprl", "collect", *_system(source), "--need", str(need), "--strategy", leg["strategy"]["name"]]
        given = {"seed": manifest["seed"], **limits, **options, **around, **_fleet(leg)}
        for name, value in given.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return "sh", shlex.join(words)
    return "python", _call(manifest, leg, source, {**(options or {}), **around, **limits})


def _system(source: Mapping[str, Any]) -> list[str]:
    if "process" in source:
        return ["--process", shlex.join(source["process"])]
    settings = source.get("settings", {})
    return [str(source["env"]), *(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))]


def _changed(strategy: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a strategy that are not the default; None if it cannot be made from its description."""
    from gosprl import strategies

    if "name" not in strategy:
        return None
    try:
        usual = describing.strategy_described(strategies.make(strategy["name"], {}), None)["options"]
    except GosprlError:
        return None
    return {name: value for name, value in strategy["options"].items() if usual.get(name) != value}


def _declared(around: Mapping[str, Any], system: Mapping[str, Any]) -> dict[str, Any]:
    usual = {"resets": "terminal" if system["ends"] else "never", "reset_cost": 1.0}
    return {name: around[name] for name in AROUND if around.get(name) not in (None, usual.get(name))}


def _fleet(leg: Mapping[str, Any]) -> dict[str, Any]:
    workers = leg.get("fleet", {}).get("workers")
    return {} if workers is None else {"workers": workers}


def _call(
    manifest: Mapping[str, Any], leg: Mapping[str, Any], source: Mapping[str, Any], options: Mapping[str, Any]
) -> str:
    """Return a call in Python; what could not be stored has a name there."""
    system = _made(source, manifest["system"]["kind"] == "table") if "env" in source else "system"
    if leg["application"] is not None:
        function, given = f"gosprl.applications.{leg['application']['name']}", dict(leg["application"]["arguments"])
    else:
        kind, value = next(iter(leg["need"].items()))
        function, given = "gosprl.collect", {"need": value if kind in EACH else {"given": "need"}}
        given |= {"strategy": leg["strategy"].get("name", {"given": "strategy"}), **options}
    given |= {"seed": manifest["seed"], **_fleet(leg)}
    arguments = ", ".join(f"{name}={_literal(value, name)}" for name, value in given.items() if value is not None)
    made = f"  # system: {manifest['system']['name']}, made by the caller" if system == "system" else ""
    return f"{function}({system}, {arguments}){made}"


def _made(source: Mapping[str, Any], is_table: bool) -> str:
    """Return what makes a system by its name."""
    settings = source.get("settings", {})
    if not settings:
        return repr(source["env"])
    given = "".join(f", {name}={value!r}" for name, value in settings.items())
    return f"{'gosprl.envs' if is_table else 'gymnasium'}.make({source['env']!r}{given})"


def _literal(value: Any, name: str) -> str:
    """Return a value as Python writes it; the name of the argument if it was an object, or is long."""
    text = repr(value)
    return text if not isinstance(value, dict | list) and len(text) <= 60 else name
