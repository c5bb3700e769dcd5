"""Coordinates of states: from maps, from observations, and as given."""

import numpy as np
import pytest

import gosprl
from gosprl.errors import InputError
from gosprl.report.findings import of_result
from gosprl.report.places import places_of


class Points:
    """A walk on three points of a plane."""

    def __init__(self, observations):
        self.observations, self.at = observations, 0

    def reset(self, seed=None, options=None):
        self.at = 0
        return self.observations[0], {}

    def step(self, action):
        self.at = (self.at + 1) % len(self.observations)
        return self.observations[self.at], 0.0, False, False, {}


def found(observations=((0, 0), (2, 1), (5, 3))):
    return of_result(gosprl.collect(Points(observations), 2, seed=0, actions=1))


def test_states_of_a_map_are_where_they_are_drawn():
    mdp = gosprl.envs.make("four_room43")
    places = places_of(of_result(gosprl.collect(mdp, 1, seed=0)))
    assert all(mdp.map[int(y)][int(x)] != "#" for x, y in zip(places.x, places.y, strict=True))
    assert len(places.walls) == sum(line.count("#") for line in mdp.map)
    assert places.is_grid


def test_observations_that_are_two_numbers_are_coordinates():
    places = places_of(found())
    assert (places.x.tolist(), places.y.tolist(), places.is_grid) == ([0, 2, 5], [0, 1, 3], True)
    assert not places_of(found(((0.5, 0.0), (1.0, 2.0)))).is_grid
    for other in (("a", "b"), ((1, 2, 3), (4, 5, 6)), ((True, False), (False, True)), ((0, np.inf), (1, 2))):
        assert places_of(found(other)) is None


@pytest.mark.parametrize(
    "given",
    [
        [[0, 1], [2, 3], [4, 5]],
        {"a": (0, 1), "b": (2, 3), "c": (4, 5)},
        lambda name: (2 * "abc".index(name), 2 * "abc".index(name) + 1),
    ],
    ids=["array", "mapping", "function"],
)
def test_coordinates_are_given_in_three_ways(given):
    places = places_of(found("abc"), given)
    assert (places.x.tolist(), places.y.tolist()) == ([0, 2, 4], [1, 3, 5])


def test_states_without_coordinates_are_left_out():
    places = places_of(found("abc"), {"a": (0, 1), "c": (4, np.nan)})
    assert places.known.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((2, 2)), r"\[S, 2\] with S = 3 states, got \(2, 2\)"),
        ("somewhere", "expected an array"),
        ({}, "at least one state, got none"),
        (lambda name: name, "expected two numbers for the observation 'a'"),
    ],
)
def test_other_coordinates_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        places_of(found("abc"), given)
