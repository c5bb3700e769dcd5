"""The learnt prior where states are discovered: steps in the coordinates of observations, never in their order."""

import json

import gymnasium
import numpy as np
import pytest
from kinds import Maze
from priors import planned
from test_conformance import bits

import gosprl
from evidence.coordinates import walked as shown
from gosprl._kernels import ANY_STEP, STEP, first_slot, number_of, state_after
from gosprl._kernels.prior import NOT_THERE, THERE
from gosprl._kernels.steps import PROBES
from gosprl.collecting import collector as collecting
from gosprl.model.coordinates import code_of
from gosprl.planning.prior import Prior

SIDE = 5


class Rooms(Maze):
    """Rooms of a grid whose observations are a function of (context, column, row)."""

    side = SIDE

    def __init__(self, shown=tuple, **options):
        super().__init__(**options)
        self.shown = shown

    def told(self):
        return self.shown(self.place), super().told()[1]

    def get_state(self):
        return [list(self.place), json.dumps(self.rng.bit_generator.state)]

    def set_state(self, state):
        self.rng = np.random.default_rng()
        self.place, self.rng.bit_generator.state = tuple(state[0]), json.loads(state[1])


def name(place):
    """A name that says nothing, and whose order is no order of places."""
    return f"{hash((place, 7)) & 0xFFFFFF:x}"


def walk(shown=tuple, need=2, prior=True, seed=3, **options):
    kept = {k: options.pop(k) for k in ("resets", "actions", "max_steps", "out") if k in options}
    kept.setdefault("actions", 4)
    with pytest.warns(UserWarning, match="states discovered"):
        return gosprl.collect(Rooms(shown, **options), need, seed=seed, prior=prior, **kept)


def walked(result):
    """All bits but the observations, and the guarantee, which names some."""
    counts, curve = bits(result)[:2]
    return counts, curve, result.steps, result.counts.tolist(), result.unmet.tolist()


def growing(places, transitions, actions=2):
    """A model of places that were discovered in this order, and a prior that learnt from transitions between them."""
    model = gosprl.EmpiricalModel(None, actions)
    prior = Prior(model)
    for place in places:
        before = model.rows
        model.locate(place)
        prior = prior if model.rows is before else prior.resized()
    for s, a, t in transitions:
        model.update(model.locate(s), a, model.locate(t))
        prior.update()
    return model, prior


SHAPES = {
    "shifted": lambda place: tuple(x + y for x, y in zip(place, (10**30, -17, 5), strict=True)),
    "permuted": lambda place: (place[2], place[0], place[1]),
    "array": lambda place: np.array(place),
    "nested": lambda place: {"context": bool(place[0]), "at": [place[1], place[2]]},
    "longer": lambda place: (*place, *range(50)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"masks": True, "ends": True, "contexts": 2}], ids=["plain", "ends"])
def test_the_same_places_in_another_form_are_walked_alike(shape, options):
    """Bit for bit: what is shown of a place changes nothing, as long as steps are the same."""
    one, other = (walk(shown, **options) for shown in (tuple, SHAPES[shape]))
    assert walked(one) == walked(other)


@pytest.mark.parametrize("shown", [name, lambda place: (name(place), 1), lambda place: (*place, *range(100))])
def test_without_coordinates_the_walk_is_that_without_the_prior(shown):
    assert bits(walk(shown)) == bits(walk(shown, prior=False))


def test_fewer_steps_to_one_sample_of_everything():
    """Mazes with slip, paired by seed; chance alone would do this in 0.13 % of cases (sign test)."""
    fewer = [
        shown("maze 8 x 8", "places", True, True, s) < shown("maze 8 x 8", "places", False, True, s)
        for s in range(100, 120)
    ]
    assert sum(fewer) >= 17


def test_the_order_of_discovery_says_nothing():
    """The same transitions between places that got other numbers: the same weights, and the same values."""
    places = [(i, j) for i in range(4) for j in range(4)]
    transitions = [((i, j), 0, (i, j + 1)) for i in range(4) for j in range(3)]
    transitions += [((i, j), 1, (i + 1, j)) for i in range(2) for j in range(4)]
    found = []
    for order in (places, [places[k] for k in np.random.default_rng(0).permutation(16)]):
        model, prior = growing(order, transitions)
        index = [model.states.live(place) for place in places]
        goals = np.arange(model.rows.num_states) == model.states.live((3, 3))
        policy, values = planned(prior, goals, model.states.live((0, 0)))
        found.append((prior.weights, values[index], model.rows.action[policy[index]]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2)
    assert prior.weights[[STEP, ANY_STEP]].sum() > 0.5


def test_steps_lead_to_places_that_are_not_discovered():
    """A line walked half: its end is where something new is expected, by the action that led on."""
    line = [(0, k) for k in range(6)]
    transitions = [((0, k), 0, (0, k + 1)) for k in range(5)] + [((0, k), 1, (0, k)) for k in range(6)]
    model, prior = growing(line, transitions)
    goals = np.arange(model.rows.num_states) == model.states.used
    policy, values = planned(prior, goals)
    assert np.all(policy[:6] == 2 * np.arange(6))
    assert np.all(np.diff(values[:6]) < 0)


def test_it_is_learnt_how_often_there_is_a_state():
    model, prior = growing([(0,)], [((k,), 0, (k + 1,)) for k in range(5)])
    there, not_there = prior._learnt.scalars[[THERE, NOT_THERE]].tolist()
    assert (there, not_there) == (4, 0)  # the first had no usual step
    model.update(5, 0, 0)  # a wall: the usual step leads to nothing that is known
    prior.update()
    assert prior._learnt.scalars[NOT_THERE] == 1
    other = Prior(model)
    other.recall(prior.remember())
    np.testing.assert_array_equal(other._learnt.scalars, prior._learnt.scalars)


def test_tables_lead_from_codes_to_states_and_count_steps():
    """Against dictionaries, with places that share many low bits."""
    rng = np.random.default_rng(2)
    places = list({tuple(2**40 * x) for x in rng.integers(-9, 9, size=(150, 3))})
    pairs = rng.integers(len(places), size=(400, 2)).tolist()
    model, prior = growing(places, [(places[s], 0, places[t]) for s, t in pairs])
    seen = {(s, t) for s, t in pairs}  # each is new once
    by_hand = {}
    for s, t in seen:
        step = tuple(np.subtract(places[t], places[s]))
        by_hand[step] = by_hand.get(step, 0) + 1
    steps, bits62 = prior._learnt.steps, 2**62 - 1
    for s, t in seen:
        difference = (code_of(places[t]) - code_of(places[s])) & bits62
        assert state_after(steps, s, difference) == t
        assert number_of(steps, 0, difference) == by_hand[tuple(np.subtract(places[t], places[s]))]
    assert number_of(steps, 1, 0) == 0
    assert state_after(steps, 0, 12345) == model.states.used
    assert 2 * steps.scalars[-1] <= len(steps.kind)


def test_places_that_collide_take_no_longer_and_lose_only_the_last():
    """More codes that begin at one slot than are looked at."""
    size = 4096
    codes = [c for c in range(2**20) if first_slot(c, size) == 5][: PROBES + 30]
    model, prior = growing(codes + [10**7 + k for k in range(size // 4)], [])
    prior.update()
    at_zero = model.states.live(codes[0])
    reached = [state_after(prior._learnt.steps, at_zero, c - codes[0]) for c in codes]
    found = [s == model.states.live(c) for s, c in zip(reached, codes, strict=True)]
    assert all(found[:50])
    assert all(ok or s == model.states.used for ok, s in zip(found, reached, strict=True))


def test_actions_that_only_a_function_knows():
    """Their number grows beyond what there is room for; no state offers all of them."""

    class Named(Rooms):
        def step(self, action):
            return super().step(action[0])

    with pytest.warns(UserWarning, match="states discovered"):
        result = gosprl.collect(
            Named(), 2, seed=0, actions=lambda place: [(move, place[1] % 3) for move in range(4)], prior=True
        )
    assert result.met
    assert result.counts.shape == (SIDE**2, 12)
    assert np.all(np.count_nonzero(result.counts, axis=1) == 4)


def test_a_prior_grows_with_states_and_actions():
    model, prior = growing([(0, 0)], [((0, k), 0, (0, k + 1)) for k in range(5)])
    weights, concentration = prior.weights, prior.concentration
    model.widen(7)
    other = prior.resized()
    np.testing.assert_array_equal(other.weights, weights)
    np.testing.assert_array_equal(other.concentration[:2], concentration)
    step = (code_of((0, 1)) - code_of((0, 0))) & (2**62 - 1)
    assert number_of(other._learnt.steps, 0, step) == number_of(other._learnt.steps, model.num_actions, step) == 5


def test_observations_of_changing_form():
    """Ints, tuples of several lengths, strings: no error, and everything is found."""

    def shown(place):
        c, x, y = place
        return [(x, y), (x, y, 0), (f"{x} {y}", y), ((x,), (y, (c, 2**200)))][(x + y) % 4]

    assert walk(shown).met


@pytest.mark.parametrize(
    "options",
    [{}, {"masks": True, "ends": True}, {"contexts": 2, "ends": True}],
    ids=["plain", "masks", "contexts"],
)
def test_runs_that_are_interrupted_go_on_bit_for_bit(options, tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)

    def collect(steps, **out):
        return gosprl.collect(Rooms(**options), 6, actions=4, seed=3, prior=True, max_steps=steps, **out)

    whole = collect(400)
    for steps in (40, 41, 170, 399, 400):
        result = collect(steps, out=tmp_path / "run")
    assert bits(result) == bits(whole)


@pytest.mark.parametrize("cut_off", [None, 9])
def test_episodes_that_end_or_are_cut_off(cut_off):
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=cut_off)
    with pytest.warns(UserWarning, match="states discovered"):
        result = gosprl.collect(env, 2, seed=1, prior=True, key=lambda o, info: divmod(int(o), 4), max_steps=50_000)
    assert result.met
