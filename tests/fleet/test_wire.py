"""Messages: what is written is read back, and nothing else is read."""

import json

import numpy as np
import pytest
from fleet_systems import report
from hypothesis import given
from hypothesis import strategies as st

import gosprl
from gosprl import InputError
from gosprl.fleet import wire
from gosprl.fleet.orders import Order, Report
from gosprl.model.content import Content

ORDER = Order(7, 3, 0)
VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.tuples(inner, inner) | st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def read(message, order=ORDER, num_actions=5):
    if message[4] == wire.PLAIN:
        return wire.plain_report_of(message, order)
    assert message[4] == wire.REPORT
    assert int.from_bytes(message[:4], "little") == len(message) - 4
    return wire.report_of(message[5:], order, num_actions)


@given(
    VALUES,
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.booleans(),
    st.none() | st.sets(st.integers(0, 4), min_size=1).map(sorted).map(tuple),
)
def test_reports_are_read_as_they_were_written(value, reward, terminated, truncated, actions):
    written = Report(7, 3, Content().freeze(value), reward, terminated, truncated, actions)
    assert read(wire.packed_report(written)) == written


@pytest.mark.parametrize("key", [0, -1, 2**63 - 1, -(2**63), 2**63, 10**30])
def test_ints_of_any_size(key):
    message = wire.packed_report(Report(7, 3, key, 0.25))
    assert read(message) == Report(7, 3, key, 0.25)
    assert (message[4] == wire.PLAIN) == (-(2**63) <= key < 2**63)


def test_a_crash():
    assert read(wire.packed_report(Report(7, 3, gosprl.CRASH, 0.0, True))).key is gosprl.CRASH


@pytest.mark.parametrize("key", [1.5, True, object(), (1, {2}), np.int64(3), gosprl.CRASH.__class__])
def test_keys_that_have_no_text(key):
    with pytest.raises(InputError, match=r"^the observation cannot be sent: an observation of type"):
        wire.packed_report(Report(7, 3, key))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"number": 8}, "expected an answer to order 7, got one to 8"),
        ({"number": 7.0}, "expected an answer to order 7"),
        ({"number": True}, "expected an answer to order 7"),
        ({"reward": 1}, "expected a finite reward, got 1"),
        ({"reward": None}, "expected a finite reward"),
        ({"terminated": 1}, "expected true or false for terminated"),
        ({"truncated": "no"}, "expected true or false for truncated"),
        ({"key": 3}, "expected a key as text"),
        ({"key": "[1,2]"}, "not the text of a key"),
        ({"key": '{"eval": "1"}'}, "not the text of a key"),
        ({"key": None}, "expected a crash to end the episode"),
        ({"actions": []}, "expected a list of the actions offered"),
        ({"actions": [5]}, r"expected actions in 0..4, got \[5\]"),
        ({"actions": [-1]}, "expected actions in 0..4"),
        ({"actions": [True]}, "expected actions in 0..4"),
        ({"actions": [1, 1]}, "expected each action once"),
        ({"more": 1}, "expected the fields"),
    ],
)
def test_fields_that_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        wire.report_of(json.dumps({**report(7), **fields}).encode(), ORDER, 5)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"reward": NaN}', b"[" * 100_000, b"1e999"])
def test_content_that_is_no_object(content):
    with pytest.raises(ValueError, match=r"expected JSON|expected a JSON object"):
        wire.report_of(content, ORDER, 5)


def test_an_infinite_reward_is_refused_in_both_forms():
    text = json.dumps(report(7)).replace("0.5", "1e999").encode()
    with pytest.raises(ValueError, match="expected a finite reward"):
        wire.report_of(text, ORDER, 5)
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError, match="expected a finite reward"):
            read(wire.packed_report(Report(7, 3, 1, wrong)))


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_is_a_report_of_this_order(content):
    for message in (content[: wire.PLAIN_SIZE].ljust(wire.PLAIN_SIZE, b"\0"),):
        try:
            got = wire.plain_report_of(message, ORDER)
        except ValueError:
            continue
        assert got.number == 7
    with pytest.raises(ValueError, match="expected"):
        wire.report_of(content, ORDER, 5)


def test_messages_are_bounded():
    with pytest.raises(InputError, match="expected a message of at most 1,048,576 bytes, got 1,048,577"):
        wire.packed(wire.FAILED, b" " * wire.LONGEST)
