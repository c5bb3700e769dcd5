"""Systems whose states are discovered on the way: needs, resets, horizons, masks, what may still be hidden."""

import pickle

import numpy as np
import pytest

import gosprl
from gosprl import KL, CollectionError, Collector, InputError
from gosprl.fleet.simulated import Simulated
from gosprl.systems import as_system


class Chain:
    """Rooms "0" -> "1" -> ..., the last one stays; one action. `cut`: episodes are cut off after so many steps."""

    def __init__(self, length=4, ends=False, cut=None):
        self.length, self.ends, self.cut, self.log = length, ends, cut, []

    def reset(self):
        self.log.append([])
        self.room = 0
        return str(self.room), {}

    def step(self, action):
        self.room = min(self.room + 1, self.length - 1)
        self.log[-1].append(self.room)
        ended = self.ends and self.room == self.length - 1
        return str(self.room), 0.0, ended, self.cut == len(self.log[-1]), {}


class Contexts:
    """A reset draws one of four contexts; every step stays there, or ends the episode."""

    P = (0.4, 0.3, 0.25, 0.05)

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.context = int(self.rng.choice(4, p=self.P))
        return ("context", self.context), {}

    def step(self, action):
        return ("context", self.context), 0.0, action == 1, False, {}


def by_name(result):
    """Visits by observation."""
    return {result.model.states[s]: n for s, n in enumerate(result.counts.tolist())}


# Resets


def test_a_chain_is_walked_again_by_resets_at_any_time():
    """Three visits of four rooms in a row: three walks through them, so two resets by choice."""
    system = Chain()
    result = gosprl.collect(system, 3, actions=1, resets="anytime", seed=0, max_steps=500)
    assert result.met
    assert all(n[0] >= 3 for n in by_name(result).values())
    assert result.resets == len(system.log) - 1 >= 2
    assert result.steps == sum(map(len, system.log)) == result.counts.sum()
    assert result.counts.shape == (4, 1)  # the reset is none of the system's actions
    stuck = gosprl.collect(Chain(), 3, actions=1, seed=0, max_steps=500)
    assert (stuck.stop, stuck.resets) == ("max_steps", 0)
    assert stuck.unmet["state"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("cost", [0.1, 30.0])
def test_what_a_reset_costs_decides_whether_it_is_worth_it(cost):
    """A ring of 8, and a need in the first room: the way round takes 8 steps, or one and a reset."""

    class Ring(Chain):
        def step(self, action):
            self.room = (self.room + 1) % 8
            return str(self.room), 0.0, False, False, {}

    need = {"0": 40}
    result = gosprl.collect(Ring(), need, actions=1, resets="anytime", reset_cost=cost, seed=0, max_steps=2000)
    assert result.met
    assert (result.resets > 20) == (cost < 1)


def test_no_episode_is_longer_than_the_horizon():
    system = Chain(length=9)
    result = gosprl.collect(system, 4, actions=1, horizon=3, seed=0, max_steps=300)
    assert {len(episode) for episode in system.log[:-1]} == {3}
    assert len(system.log[-1]) <= 3
    assert sorted(by_name(result)) == ["0", "1", "2", "3"]  # the others cannot be reached
    assert result.resets == len(system.log) - 1
    assert result.model.starts()[1].tolist() == [len(system.log)]
    # the rooms that are left have what they need, the last one cannot be left: an episode is over there
    assert set(result.unmet["state"]) == {list(by_name(result)).index("3")}


def test_horizon_and_never_do_not_go_together():
    with pytest.raises(InputError, match=r"^horizon, resets: "):
        gosprl.collect(Chain(), 1, actions=1, horizon=3, resets="never")


def test_an_ending_is_an_error_where_there_is_none():
    with pytest.raises(
        gosprl.CollectionError, match=r"an episode ended with '3' at step 3; leave out resets="
    ) as caught:
        gosprl.collect(Chain(ends=True), 1, actions=1, resets="never", seed=0)
    assert caught.value.result.steps == 2


def test_resets_are_needed_as_often_as_actions_once_there_are_some():
    result = gosprl.collect(Chain(ends=True), 5, actions=1, seed=0, max_steps=14)
    assert {(-1, 0, 5, 5), (0, 0, 5, 5)}.isdisjoint(map(tuple, result.unmet.tolist()))
    few = gosprl.collect(Chain(ends=True), 5, actions=1, seed=0, max_steps=7)
    assert (-1, 0, 5, 3) in few.unmet.tolist()  # state -1 is the reset: the start, and one after each ending
    assert gosprl.collect(Chain(ends=True), 5, actions=1, seed=0).resets == 4


def test_only_resets_are_missing_and_no_action_leads_there():
    """Episodes end by the clock alone: the walk goes on until it was reset as often as needed."""
    system = Chain(length=1, cut=3)
    result = gosprl.collect(system, 6, actions=1, seed=0, max_steps=1000)
    assert result.met
    assert result.model.starts()[1].tolist() == [6]
    assert (len(system.log), result.steps) == (6, 15)  # though 6 steps would do for the action


class Ring:
    """Four rooms in a ring, forwards and backwards; no episode ends, unless it is cut off after so many steps."""

    def __init__(self, cut=None):
        self.cut = cut

    def reset(self):
        self.room = self.age = 0
        return self.room, {}

    def step(self, action):
        self.room, self.age = (self.room + (1 if action else -1)) % 4, self.age + 1
        return self.room, 0.0, False, self.age == self.cut, {}


def in_parts(cut):
    """One walker, that begins anew now and then."""
    collector = Collector(actions=2, need=5, seed=0)
    for steps in (3, 3, 3, 3, 600):
        result = collector.run(as_system(Ring(cut), actions=2), max_steps=steps)
    return result


def with_data(cut):
    """A run that begins with the samples of two others, in another order."""
    parts = [gosprl.collect(Ring(cut), 5, actions=2, seed=seed, max_steps=9).model for seed in (1, 2)]
    return gosprl.collect(Ring(cut), 5, actions=2, seed=0, max_steps=600, data=parts, data_order="unknown")


def by_hand(cut):
    """Walkers that ask and tell; now and then one of them is gone, which was perhaps a crash."""
    collector, rng, rooms = Collector(actions=2, need=5, seed=0, lost="state"), np.random.default_rng(0), {}
    for _ in range(600):
        name = int(rng.integers(3))
        room, age = rooms.setdefault(name, (0, 0))
        if collector.done or (action := collector.ask(room, walker=name)) == gosprl.WAIT:
            continue
        if rng.random() < 0.1:
            collector.lost(name)
            del rooms[name]
            continue
        after = (room + (1 if action else -1)) % 4
        collector.tell(room, action, after, truncated=age + 1 == cut, walker=name)
        rooms[name] = (after, age + 1) if age + 1 != cut else (0, 0)
    return collector.result()


def in_a_fleet(lost):
    """Walkers of which some die, and others join."""

    def walked(cut):
        fleet = Simulated(
            lambda: Ring(cut),
            *(2,),
            actions=2,
            entropy=[0, 7],
            joins=(0.0, 2.5, 7.0),
            restart=1.0,
            lost=lambda rng, report: rng.random() < 0.1,
        )
        return gosprl.collect(Ring, 5, actions=2, seed=0, workers=fleet, lost=lost, max_steps=600)

    return walked


KINDS = {
    "parts": in_parts,
    "data": with_data,
    "by hand": by_hand,
    **{f"fleet, {lost}": in_a_fleet(lost) for lost in ("unknown", "state", "independent")},
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_reset_is_needed_until_an_episode_was_seen_to_end(kind):
    """Where none ends, no walk leads to another reset, however often the parts of a run and its walkers began."""
    endless, cut = KINDS[kind](None), KINDS[kind](3)
    assert endless.stop == "met"
    assert endless.counts.min() >= 5
    assert kind == "by hand" or endless.model.starts()[1].sum() > 1  # though there were several resets
    assert cut.stop == "met"
    assert cut.model.starts()[1].sum() >= 5  # they are needed, and count


# What is hidden


def test_unseen_goes_on_until_the_caps_are_below():
    """The caps are those of the sets, looked at from outside, pair by pair and for the reset."""
    loose, tight = (gosprl.collect(Contexts(), 1, actions=2, seed=1, unseen=x) for x in (0.5, 0.1))
    for result, x in ((loose, 0.5), (tight, 0.1)):
        model = result.model
        learnt = np.flatnonzero(model.enabled & ~model.certain)
        caps = KL(0.1).intervals(model, learnt).total
        assert result.met
        assert caps.max() == pytest.approx(result.unseen)
        assert result.unseen <= x
    assert loose.steps < tight.steps
    short = gosprl.collect(Contexts(), 1, actions=2, seed=1, unseen=0.1, max_steps=tight.steps - 1)
    assert not short.met
    assert short.unseen > 0.1 or short.unmet["needed"].max() > 1


def test_all_contexts_that_are_likely_are_found():
    """At level 0.1 no context of a probability above 0.2 may be missing: nearly all runs have the first three."""
    runs = [gosprl.collect(Contexts(), 1, actions=2, seed=seed, unseen=0.2) for seed in range(20)]
    likely = {("context", c) for c in range(3)}
    assert sum(likely <= set(by_name(run)) for run in runs) >= 18


def test_what_is_met_is_said_to_be_met_for_the_states_discovered():
    with pytest.warns(UserWarning, match=r"^met for the 3 states discovered; .* unseen=0\.05 would go on"):
        result = gosprl.collect(Chain(ends=True), 1, actions=1, seed=0)
    assert "True (for the 3 states discovered, 3 pairs)" in repr(result)  # the last room ends an episode: it is final
    assert str(result.guarantee).endswith("of the states discovered")


# Needs by observation


def test_a_need_by_observation_is_met_when_it_was_found_and_sampled():
    result = gosprl.collect(Chain(6), {"4": 1, "2": {0: 1}}, actions=1, seed=0, max_steps=100)
    assert (result.met, result.steps, result.states) == (True, 5, 2)
    assert not result.of_discovered


def test_an_observation_that_is_never_made_is_looked_for():
    result = gosprl.collect(Chain(3), {"1": 1, "nowhere": 2, "never": 1}, actions=1, seed=0, max_steps=50)
    assert (result.met, result.stop, result.steps, result.states) == (False, "max_steps", 50, 3)
    assert result.unmet.tolist() == [(-2, -1, 2, 0)]  # two observations that were not discovered
    given_up = gosprl.collect(Chain(3, ends=True), {"nowhere": 2}, actions=1, seed=0, reach=5, max_steps=10**5)
    assert given_up.stop == "unreachable"
    assert list(given_up.unreachable) == [-2]
    assert given_up.named(-2) in repr(given_up)


def test_a_run_that_looks_for_ever_says_what_for(monkeypatch):
    monkeypatch.setattr("gosprl.collecting.patience.PATIENCE", 100)
    with pytest.warns(UserWarning, match="such as observations not made yet, which perhaps"):  # noqa: SIM117
        with pytest.raises(CollectionError, match="enough"):
            gosprl.collect(Tired(3), {"1": 1, "nowhere": 2}, actions=1, seed=0)


class Tired(Chain):
    def step(self, action):
        if len(self.log[-1]) == 5000:
            raise OSError("enough")
        return super().step(action)


def test_results_can_be_stored_whatever_the_functions_were():
    result = gosprl.collect(Chain(3), 1, key=lambda o, _: ("room", o), actions=[print], seed=0, max_steps=9)
    again = pickle.loads(pickle.dumps(result))
    assert again.model.states[1] == ("room", "1")
    assert again.model.actions == ["<built-in function print>"]


def test_an_action_that_is_not_offered_cannot_be_met():
    class Doors(Chain):
        def reset(self):
            return super().reset()[0], {"action_mask": np.array([1, 0], dtype=np.int8)}

    result = gosprl.collect(Doors(2), {"0": {0: 1, 1: 1}}, actions=2, seed=0, max_steps=50)
    assert result.stop == "unreachable"
    assert result.unreachable == {0: "action 1 is not offered"}
    assert gosprl.collect(Doors(2), {"0": 1}, actions=2, seed=0, max_steps=50).met  # of those that it offers


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (np.ones(3), "need: expected a number, or a dict of observations to samples"),
        (lambda model: np.ones(3), "need: expected a number, or a dict of observations to samples"),
        ({"1": -1}, "need: of '1': expected numbers of samples"),
        ({"1": {0: 0.5}}, "need: of '1': expected whole numbers"),
        ({"1": {1: 5}}, r"need: of '1': actions: expected values among \[0\], got 1"),
        ({float("nan"): 1}, "need: of nan: observation contains nan"),
    ],
)
def test_needs_that_make_no_sense_here(need, words):
    with pytest.raises(gosprl.GosprlError, match=words):
        gosprl.collect(Chain(), need, actions=1)


class Named(Chain):
    """Words for actions: only "on" leads on."""

    def step(self, action):
        return super().step(0) if action == "on" else (str(self.room), 0.0, False, False, {})


@pytest.mark.parametrize("actions", [["off", "on"], lambda observation: ["off", "on"]], ids=["listed", "by function"])
def test_a_need_by_the_values_of_actions(actions):
    result = gosprl.collect(
        Named(4, ends=True), {"1": {"on": 2}, "2": {"off": 3}}, actions=actions, seed=0, max_steps=500
    )
    at = {result.model.states[s]: s for s in range(result.model.num_states)}
    assert result.met
    assert sorted(result.model.actions) == ["off", "on"]
    assert result.counts.shape == (3, 2)
    assert result.counts[at["1"], result.model.actions.index("on")] >= 2
    assert result.counts[at["2"], result.model.actions.index("off")] >= 3


def test_a_value_that_no_state_offers_is_not_met():
    need = {"0": {"on": 1, "up": 2}}
    with pytest.raises(InputError, match=r"need: of '0': actions: expected values among \['on', 'off'\], got 'up'"):
        gosprl.collect(Named(3), need, actions=["on", "off"])
    many = [f"word {i}" for i in range(20)]  # more than a model has room for at first
    result = gosprl.collect(Named(3), need | {"2": dict.fromkeys(many, 1)}, actions=lambda _: ["on", "off"], seed=0)
    assert (result.stop, result.met) == ("unreachable", False)
    assert result.missing == 22
    assert result.unreachable == {0: "action up is not offered", 2: "action word 0 is not offered"}
    assert pickle.loads(pickle.dumps(result)).model.actions == ["on", "up", *many, "off"]


def test_with_key_a_need_is_by_its_values():
    result = gosprl.collect(Chain(5, ends=True), {("room", 3): 2}, key=lambda o, _: ("room", int(o)), actions=1, seed=0)
    assert result.met


@pytest.mark.parametrize("name", ["key", "actions"])
def test_a_function_that_fails_is_named_with_the_step(name):
    answers = {"0": [0], "1": [0], "2": [0]}
    functions = {"key": lambda o, info: (o, *answers[o]), "actions": lambda o: answers[o]}
    given = {"actions": 1} | {name: functions[name]}
    with pytest.raises(CollectionError, match=rf"after 2 steps: Chain, step 3 .*{name}: the function failed at \('3'"):
        gosprl.collect(Chain(6), 2, seed=0, **given)


def test_a_dict_for_states_that_are_known():
    river = gosprl.envs.make("riverswim6")
    result = gosprl.collect(river, {0: 5, 3: {1: 2}}, seed=0)
    assert result.met
    assert (result.counts >= [[5, 5], [0, 0], [0, 0], [0, 2], [0, 0], [0, 0]]).all()
    with pytest.raises(InputError, match=r"need: an observation: expected a state in 0\.\.5, got 6"):
        gosprl.collect(river, {6: 1})


# Ask and tell


@pytest.mark.parametrize(
    "rooms", [(0, 1, 2), ("a", "b", "c"), ((0, 1.5), (0, -1.5), (1, 0)), [np.array([i, 1.0]) for i in range(3)]]
)
def test_observations_can_be_anything_that_has_a_value(rooms):
    collector, s = Collector(actions=1, need=2, seed=0), 0
    while not collector.done:
        collector.tell(rooms[s], collector.ask(rooms[s]), rooms[(s + 1) % 3])
        s = (s + 1) % 3
    result = collector.result()
    assert (result.met, result.counts.tolist()) == (True, [[2], [2], [2]])
    for seen, room in zip(result.model.states[:3], rooms, strict=True):
        assert np.array_equal(seen, room)


def test_a_need_by_observation_for_a_loop_of_ones_own():
    collector, s = Collector(actions=1, need={(2.5,): 2}, seed=0), 0
    while not collector.done:
        collector.tell((s / 2,), collector.ask((s / 2,)), ((s + 1) % 6 / 2,))
        s = (s + 1) % 6
    assert collector.record.steps == 12


def test_reset_is_an_answer():
    """Where it may be chosen; it is not told, and the next question is about where it led."""
    collector, answers, s = Collector(actions=1, need=3, seed=0, resets="anytime"), [], 0
    while not collector.done:
        answers.append(collector.ask(s))
        if answers[-1] == gosprl.RESET:
            s = 0
            continue
        collector.tell(s, answers[-1], min(s + 1, 2))
        s = min(s + 1, 2)
    result = collector.result()
    assert result.met
    assert result.resets == answers.count(gosprl.RESET) >= 2
    assert result.model.starts()[1].tolist() == [result.resets + 1]
    assert result.steps == answers.count(0) == result.counts.sum()


def test_the_horizon_is_an_answer_as_well():
    collector, episodes, s = Collector(actions=1, need=3, seed=0, horizon=2), [0], 0
    while not collector.done and len(episodes) < 9:
        a = collector.ask(s)
        if a == gosprl.RESET:
            episodes.append(0)
            s = 0
            continue
        collector.tell(s, a, s + 1)
        episodes[-1] += 1
        s += 1
    assert set(episodes[:-1]) == {2}


def test_only_what_is_offered_is_asked_for():
    rng, collector, s = np.random.default_rng(0), Collector(actions=5, need=3, seed=0), 0
    offers = {0: (1, 4), 1: (0,), 2: None, 3: (2, 3)}
    taken = {s: set() for s in offers}
    while not collector.done:
        a = collector.ask(s, offers[s])
        taken[s].add(a)
        s_next = int(rng.integers(4))
        collector.tell(s, a, s_next)
        s = s_next
    assert taken == {0: {1, 4}, 1: {0}, 2: {0, 1, 2, 3, 4}, 3: {2, 3}}
    result = collector.result()
    assert (result.met, result.pairs) == (True, 10)
    assert collector.model.aliased == set()


def test_states_that_offer_now_this_now_that_are_named():
    rng, collector, s = np.random.default_rng(0), Collector(actions=3, need=3, seed=0), "hall"
    while not collector.done:
        offer = [(0, 1), (1, 2)][int(rng.integers(2))] if s == "hall" else None
        a = collector.ask(s, offer)
        assert offer is None or a in offer
        s_next = "hall" if s == "room" else "room"
        collector.tell(s, a, s_next)
        s = s_next
    result = collector.result()
    assert result.met
    assert "given that hall are states, though they offered different actions" in str(result.guarantee)


@pytest.mark.parametrize("offer", [[], [5], [-1], ["a"]])
def test_offers_that_make_no_sense(offer):
    with pytest.raises(InputError, match=r"^actions: "):
        Collector(actions=3, need=3, seed=0).ask("hall", offer)
