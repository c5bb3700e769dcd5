"""Strategies by name and their options: which has which, and what is said of those that it does not have."""

import itertools
import re
from dataclasses import fields

import pytest

import gosprl
from gosprl import InputError
from gosprl.envs import make
from gosprl.strategies import STRATEGIES, Gosprl, Guarded, Random, options_of

RIVER = make("riverswim6")
OPTIONS = {name: options_of(name) for name in STRATEGIES}
ALL = sorted(set(itertools.chain.from_iterable(OPTIONS.values())))


def message(**given):
    with pytest.raises(InputError) as caught:
        gosprl.collect(RIVER, 1, **given)
    return str(caught.value)


def test_options_are_the_fields_of_the_dataclass():
    for name, kind in STRATEGIES.items():
        assert OPTIONS[name] == [field.name for field in fields(kind)]
    assert OPTIONS["random"] == []
    assert "kappa" in OPTIONS["guarded"]
    assert "scale" not in OPTIONS["guarded"]


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_option_of_others_is_an_error_that_names_them(name):
    """Of every strategy, with every option that it does not have and another one has."""
    foreign = [option for option in ALL if option not in OPTIONS[name]]
    assert foreign
    for option in foreign:
        said = message(strategy=name, **{option: 1})
        takes = f"takes {', '.join(OPTIONS[name])}" if OPTIONS[name] else "takes no options"
        assert said.startswith(f"{option}: not an option of strategy {name!r}, which {takes}; {option} is an option of")
        told = re.search(f"{option} is an option of (.*): choose one with strategy=", said).group(1).split(", ")
        assert told == [other for other in STRATEGIES if option in OPTIONS[other]]


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_option_that_no_strategy_has(name):
    said = message(strategy=name, sliver=0.1)
    assert said.startswith(f"sliver: not an option of strategy {name!r}, which takes ")
    assert "is an option of" not in said
    assert "say strategy=" not in said


def test_no_option_chooses_the_strategy():
    """Without a name it is guarded, whatever the options; options of others are errors."""
    assert message(scale=0.1).startswith("scale: not an option of strategy 'guarded', which takes delta, confidence, ")
    for option in ("scale", "goals", "costs", "reach_constant", "precision", "planning", "random_ties"):
        said = message(**{option: 1})
        assert said.startswith(f"{option}: not an option of strategy 'guarded'")
        assert re.search(f"{option} is an option of gosprl", said)
    said = message(scale=0.5, kappa=2)
    assert said.startswith("scale: not an option of strategy 'guarded'")


def test_the_random_walk_takes_no_options():
    for options in ({"delta": 0.1}, {"seeds": 3}, {"scale": 1.0, "delta": 0.1}):
        said = message(strategy="random", **options)
        assert said.startswith(f"{next(iter(options))}: not an option of strategy 'random', which takes no options")


def test_the_same_of_a_collector():
    with pytest.raises(InputError, match=r"scale: not an option of strategy 'guarded', .* of gosprl, practical, "):
        gosprl.Collector(6, 2, 1, scale=0.1)
    with pytest.raises(InputError, match=r"kappa: not an option of strategy 'gosprl', .* is an option of guarded: "):
        gosprl.Collector(6, 2, 1, strategy="gosprl", kappa=2)


@pytest.mark.parametrize("name", ["gosprel", "", "Guarded", "GOSPRL"])
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(name):
    known = f"strategy: {name!r} is not known; known are {', '.join(sorted(STRATEGIES))}"
    assert message(strategy=name).partition("; did you mean")[0] == known


def test_an_object_has_its_options_already():
    for strategy, options in (
        (Gosprl(), {"scale": 0.1}),
        (Guarded(), {"kappa": 1, "delta": 0.2}),
        (Random(), {"x": 1}),
    ):
        said = message(strategy=strategy, **options)
        assert said.startswith(f"{', '.join(options)}: a strategy object was given, which has its options already")


@pytest.mark.parametrize(
    "strategy", [None, 3, Guarded, ["guarded"], object()], ids=["None", "int", "class", "list", "object"]
)
def test_what_is_no_strategy(strategy):
    words = f"strategy: expected a name, one of {', '.join(STRATEGIES)}, or a gosprl.strategies.Strategy, got "
    assert message(strategy=strategy).startswith(words)


def test_a_name_with_options_is_the_object_with_them():
    for options in ({"delta": 0.2, "scale": 0.3}, {}):
        by_name = gosprl.collect(RIVER, 3, strategy="gosprl", seed=0, **options)
        by_object = gosprl.collect(RIVER, 3, strategy=Gosprl(**options), seed=0)
        assert by_name.strategy == by_object.strategy == repr(Gosprl(**options))
        assert by_name.counts.tolist() == by_object.counts.tolist()
