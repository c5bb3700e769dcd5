"""What a server answers: as a collector that is asked and told the same."""

import json

import pytest

import gosprl
from gosprl.serving import Server


def server(need=3, actions=range(2), max_steps=None, **options):
    return Server(lambda count: gosprl.Collector(None, count, need, seed=0, **options), actions, max_steps)


def say(to, **request):
    return to.answer(json.dumps(request).encode() + b"\n")


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
        (b'{"type":"ask","observation":0,"walker":"b"}\n', "walker: expected 'a': several are not served yet"),
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
