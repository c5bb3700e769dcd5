"""What a server answers: as a collector that is asked and told the same."""

import json
import time

import pytest

import gosprl
from gosprl.serving import Server


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def server(need=3, actions=range(2), max_steps=None, late=20, now=time.monotonic, **options):
    return Server(lambda count: gosprl.Collector(None, count, need, seed=0, **options), actions, max_steps, late, now)


def say(to, client=None, **request):
    return to.answer(json.dumps(request).encode() + b"\n", client)


def ring(s, action, size=4):
    return (s + (1 if action else -1)) % size


def test_a_client_is_told_what_a_collector_says():
    served, collector, s = server(), gosprl.Collector(None, 2, 3, seed=0), 0
    while not collector.done:
        action = collector.ask(s)
        assert say(served, type="ask", observation=s) == {"action": action}
        after = ring(s, action)
        collector.tell(s, action, after)
        assert say(served, type="tell", observation=after, id=7) == {"ok": True, "done": collector.done, "id": 7}
        s = after
    told = say(served, type="ask", observation=s)
    assert told["done"]
    assert told["met"]
    result = collector.result()
    assert (told["steps"], told["states"], told["guarantee"]) == (result.steps, 4, str(result.guarantee))
    assert served.result().counts.tolist() == result.counts.tolist()


def test_asking_again_gives_the_same_answer():
    served = server()
    assert say(served, type="ask", observation=[0]) == say(served, type="ask", observation=[0])


def test_names_offers_and_endings():
    served, state, seen = server(actions=["wait", "go"], need=4), 0, []
    while not served.done:
        asked = {"type": "ask", "observation": {"at": state}} | ({"actions": ["go"]} if state == 2 else {})
        action = say(served, **asked)["action"]
        seen.append((state, action))
        after = state + (action == "go")
        ends = after == 3
        assert say(served, type="tell", observation={"at": after}, terminated=ends)["ok"]
        state = 0 if ends else after
    assert {action for s, action in seen if s == 2} == {"go"}
    result = served.result()
    assert result.met
    assert list(result.model.actions) == ["wait", "go"]
    assert result.counts.tolist() == [
        [sum(pair == (s, name) for pair in seen) for name in ("wait", "go")] for s in range(3)
    ]
    assert result.resets > 0


def test_a_crash_is_told():
    served = server(need=1, actions=range(1))
    say(served, type="ask", observation="a")
    assert say(served, type="tell", crashed=True)["ok"]
    assert served.result().crashes == 1


def test_a_reset_is_asked_for():
    served, state, words = server(need=4, actions=range(1), resets="anytime", reset_cost=0.5), 0, []
    while not served.done and len(words) < 200:
        words.append(say(served, type="ask", observation=state)["action"])
        if words[-1] == "reset":
            state = 0
        else:
            state = min(state + 1, 3)  # nothing leads back
            say(served, type="tell", observation=state)
    assert "reset" in words
    assert served.result().met


def test_the_first_client_may_say_the_actions():
    served = server(actions=None)
    assert not served.done
    assert served.result() is None
    assert "expected a hello first" in say(served, type="ask", observation=0)["error"]
    told = say(served, type="hello", protocol=1, actions=["a", "b"])
    assert told == {"type": "hello", "protocol": 1, "actions": ["a", "b"], "done": False}
    assert say(served, type="hello", protocol=1)["actions"] == ["a", "b"]
    assert "as this server knows" in say(served, type="hello", protocol=1, actions=3)["error"]


def test_a_budget():
    served = server(need=100, max_steps=5)
    for _ in range(5):
        assert "action" in say(served, type="ask", observation=0)
        told = say(served, type="tell", observation=0)
    assert told == {"ok": True, "done": True}
    told = say(served, type="ask", observation=0)
    assert (told["done"], told["met"], told["stop"], told["steps"]) == (True, False, "max_steps", 5)
    assert say(served, type="result")["missing"] == 195


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"garbage\n", "expected a JSON object, got 'garbage'"),
        (b"\xff\n", "expected UTF-8"),
        (b'{"type":"dance"}\n', "type: expected one of hello, ask, tell, result, close, got 'dance'"),
        (b'{"type":["ask"]}\n', "type: expected one of"),
        (b"{}\n", "type: expected one of"),
        (b'{"type":"ask"}\n', "observation: expected any JSON value"),
        (b'{"type":"ask","observation":NaN}\n', "expected JSON, which has no NaN"),
        (b'{"type":"ask","observation":"\\uD800"}\n', "expected Unicode, got half of a surrogate pair"),
        (b'{"type":"hello","protocol":1,"actions":100001}\n', "actions: expected their number, 1 to 100,000"),
        (b'{"type":"ask","observation":0,"actions":[5]}\n', "actions: expected some of [0, 1], got 5"),
        (b'{"type":"ask","observation":0,"actions":[]}\n', "actions: expected a list of at least one"),
        (b'{"type":"ask","observation":0,"walker":["b"]}\n', "walker: expected a name or a whole number, got ['b']"),
        (b'{"type":"ask","observation":0,"walker":true}\n', "walker: expected a name or a whole number, got True"),
        (b'{"type":"tell","observation":0,"walker":"b"}\n', "tell: expected an ask of walker 'b' first"),
        (b'{"type":"tell","observation":0,"reward":"much"}\n', "reward: expected a finite number"),
        (b'{"type":"tell","observation":0,"terminated":1}\n', "terminated: expected true or false"),
        (b'{"type":"tell"}\n', "observation: expected any JSON value"),
        (b'{"type":"hello","protocol":2}\n', "protocol: expected 1"),
    ],
)
def test_a_wrong_request_changes_nothing(line, words):
    served = server()
    first = say(served, type="ask", observation=0, walker="a")
    told = served.answer(line)
    assert words in told["error"]
    assert say(served, type="ask", observation=0) == first
    assert say(served, type="tell", observation=1)["ok"]
    assert served.result().counts.sum() == 1


def test_nothing_to_tell():
    served = server()
    assert "expected an ask first" in say(served, type="tell", observation=0)["error"]
    say(served, type="ask", observation=0)
    say(served, type="tell", observation=1)
    assert "expected an ask first" in say(served, type="tell", observation=1)["error"]


def test_no_action_is_called_reset():
    with pytest.raises(gosprl.InputError, match="expected other names than 'reset'"):
        server(actions=["go", "reset"])


@pytest.mark.parametrize("max_steps", [0, -1, 2.5])
def test_a_budget_that_is_none(max_steps):
    with pytest.raises(gosprl.InputError, match="max_steps: expected a whole number >= 1"):
        server(max_steps=max_steps)


def test_pairs_of_surrogates_are_characters():
    served = server()
    assert "action" in served.answer(b'{"type":"ask","observation":"\\ud83d\\ude00"}\n')
    assert say(served, type="tell", observation="\\ud800")["ok"]  # a backslash and five letters
    assert list(served.result().model.states)[:2] == ["\N{GRINNING FACE}", "\\ud800"]


def test_asking_again_with_another_offer():
    """A client that comes back may find the same observation with other actions: an aliased state."""
    served = server(actions=range(3))
    first = say(served, type="ask", observation=0, actions=[0])
    again = say(served, type="ask", observation=0, actions=[1, 2])
    assert (first, again["action"] in (1, 2)) == ({"action": 0}, True)
    assert say(served, type="ask", observation=0) == again
    assert say(served, type="tell", observation=0)["ok"]
    counts = served.result().counts[0]
    assert (counts[again["action"]], counts.sum()) == (1, 1)


def test_one_observation_too_many_changes_nothing():
    served = server(max_states=2)
    say(served, type="ask", observation=0)
    say(served, type="tell", observation=1, terminated=True)
    first = say(served, type="ask", observation=1)
    assert "max_states: expected at most 2" in say(served, type="ask", observation=2)["error"]
    assert say(served, type="tell", observation=0, terminated=True)["ok"]  # of the question before
    assert "max_states: expected at most 2" in say(served, type="ask", observation=2)["error"]
    assert "action" in say(served, type="ask", observation=0)
    result = served.result()
    assert (result.counts[1].tolist()[first["action"]], result.counts.sum(), result.resets) == (1, 2, 2)


# several walkers


def lamp(served, walker, client=None, observation=0, **more):
    """Ask for a walker, in a room where nothing changes."""
    return say(served, client, type="ask", observation=observation, walker=walker, **more)


def tell(served, walker, client=None, observation=0, **more):
    return say(served, client, type="tell", observation=observation, walker=walker, **more)


def test_walkers_share_one_need_and_wait_for_each_other():
    served = server(need=1, resets="never")
    first, second = lamp(served, "a"), lamp(served, "b")
    assert {first["action"], second["action"]} == {0, 1}
    waiting = lamp(served, "c", id=7)
    assert (set(waiting), waiting["id"], 0.01 <= waiting["wait"] <= 1) == ({"wait", "id"}, 7, True)
    assert tell(served, "b") == {"ok": True, "done": False}
    assert tell(served, "a") == {"ok": True, "done": True}
    assert all(lamp(served, walker)["done"] for walker in "abc")
    told = say(served, type="result")
    assert (told["walkers"], told["in_flight"], told["lost"]) == (3, 0, 0)
    assert served.result().counts.tolist() == [[1, 1]]


def test_one_client_may_have_several_walkers_and_another_one_none_of_them():
    served = server()
    lamp(served, "a", 1)
    lamp(served, 2, 1)
    assert "the walker 'a' belongs to another client" in lamp(served, "a", 2)["error"]
    assert "the walker 'a' belongs to another client" in tell(served, "a", 2)["error"]
    assert "expected one of 'a', 2, got none" in lamp(served, None, 1)["error"]
    assert "action" in lamp(served, None, 2)  # the walker without a name is that of the second client
    assert "the walker without a name belongs to another client" in lamp(served, None, 3)["error"]
    assert tell(served, "a", 1)["ok"]
    assert tell(served, 2, 1)["ok"]
    assert tell(served, None, 2)["ok"]
    assert served.result().steps == 3


def test_what_a_client_leaves_behind_is_unknown_and_may_be_told_later():
    served = server(need=1, actions=range(1), resets="never")
    lamp(served, "a", 1)
    assert "wait" in lamp(served, "b", 2)
    served.leave(1)
    assert served.collector.in_flight == ()
    assert "action" in lamp(served, "b", 2)
    assert tell(served, "a", 3)["ok"]  # the same walker, on another connection
    assert served.result().counts.tolist() == [[1]]
    assert lamp(served, "a", 3)["done"]
    assert tell(served, "b", 2)["done"]
    assert served.result().counts.tolist() == [[2]]


def test_a_walker_that_was_alone_is_lost_when_another_one_comes():
    served = server(need=1, actions=range(1), resets="never")
    lamp(served, "a", 1)
    served.leave(1)
    assert served.collector.in_flight == ("a",)  # it may come back and go on
    assert "action" in lamp(served, "b", 2)
    assert served.collector.in_flight == ("b",)
    assert served.collector.model.unknown.sum() == 1


def test_a_client_that_left_alone_goes_on():
    served = server(need=2, actions=range(1))
    first = lamp(served, "a", 1)
    served.leave(1)
    assert lamp(served, "a", 2) == first
    assert tell(served, "a", 2)["ok"]
    assert served.result().counts.tolist() == [[1]]


@pytest.mark.parametrize(
    ("late", "lost", "unknown", "crashes"),
    [
        (2, "unknown", 1, 0),
        ("3s", "unknown", 1, 0),
        (2, "state", 1, 0),  # what is late depends on the others, so it is no outcome of the pair
        ("3s", "state", 0, 1),
        (2, "independent", 0, 0),
    ],
)
def test_walkers_that_are_late(late, lost, unknown, crashes):
    clock = Clock()
    served = server(need=12, actions=range(1), late=late, now=clock, lost=lost)
    for _ in range(10):
        lamp(served, "b")
        clock.time += 1
        tell(served, "b")
    lamp(served, "a")
    assert lamp(served, "b")["action"] == 0
    clock.time += 1
    tell(served, "b")
    assert lamp(served, "b") == {"wait": 1.0}
    clock.time += 2.5
    told = lamp(served, "b")
    assert told["done"] if crashes else told == {"action": 0}  # a crash is a sample, too
    assert (served.collector.model.unknown.sum(), served.result().crashes) == (unknown, crashes)
    assert tell(served, "a")["ok"]
    assert served.collector.model.unknown.sum() == 0
    assert crashes or tell(served, "b")["done"]
    assert served.result().met


def test_nobody_is_late_without_a_limit():
    clock = Clock()
    served = server(need=1, actions=range(1), late=None, now=clock, resets="never")
    lamp(served, "a")
    clock.time += 1e9
    assert "wait" in lamp(served, "b")


def test_resets_that_are_late():
    clock = Clock()
    served = server(need=2, actions=range(1), late="3s", now=clock)
    for walker in "ab":
        lamp(served, walker)
    for walker in "ab":
        tell(served, walker, terminated=True)
    assert served.collector.in_flight == ("a", "b")
    clock.time += 4
    lamp(served, "b")
    assert served.collector.in_flight in ((), ("b",))
    assert served.collector.model.unknown.sum() == 1


def test_a_budget_of_several_walkers():
    served = server(need=100, max_steps=3)
    for walker in "abc":
        assert "action" in lamp(served, walker)
    assert "wait" in lamp(served, "d")
    assert lamp(served, "a")["action"] in (0, 1)  # again
    assert not tell(served, "a")["done"]
    assert "wait" in lamp(served, "a")
    assert "wait" in lamp(served, "b", observation=1)  # what it was asked for will have no answer
    assert tell(served, "c") == {"ok": True, "done": True}
    told = lamp(served, "d")
    assert (told["done"], told["stop"], told["steps"]) == (True, "max_steps", 3)


def test_a_reset_is_asked_of_each_walker():
    served = server(need=4, actions=range(1), resets="anytime", reset_cost=0.5)
    state, resets = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)
    for _ in range(200):
        for walker in "ab":
            told = lamp(served, walker, observation=state[walker])
            if told.get("action") == "reset":
                state[walker], resets[walker] = 0, resets[walker] + 1
            elif "action" in told:
                state[walker] = min(state[walker] + 1, 3)  # nothing leads back
                tell(served, walker, observation=state[walker])
        if served.done:
            break
    assert min(resets.values()) > 0
    assert served.result().met


def test_no_more_walkers_than_can_be_kept(monkeypatch):
    monkeypatch.setattr("gosprl.serving.server.MOST_WALKERS", 2)
    served = server(need=9)
    lamp(served, "a", 1)
    lamp(served, "b", 1)
    assert "walker: expected at most 2 at a time" in lamp(served, "c", 2)["error"]
    served.leave(1)
    assert "action" in lamp(served, "c", 2)
