"""The checks of input that the tests of their callers do not cover."""

import numpy as np
import pytest

from gosprl import GosprlError, InputError, _checks


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.uint64(3), np.float32(3)])
def test_integers_takes_whole_numbers_of_any_type(value):
    result = _checks.integers("n", value, 0, 4, "numbers")
    assert result == 3
    assert result.dtype == np.int64
    assert result.shape == ()


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_integers_of_nothing(shape):
    result = _checks.integers("n", np.empty(shape), 0, 4, "numbers")
    assert result.dtype == np.int64
    assert result.shape == shape


@pytest.mark.parametrize("value", [True, [True, False], 1.5, [0, np.nan], np.inf, "1", None, 1j])
def test_integers_rejects_what_is_no_whole_number(value):
    with pytest.raises(InputError, match=r"^n: expected whole numbers \(numbers\), got"):
        _checks.integers("n", value, 0, 4, "numbers")


@pytest.mark.parametrize("value", [4, -1, np.uint64(2**63), 1e300, -1e300])
def test_integers_rejects_what_is_outside(value):
    with pytest.raises(InputError, match=r"^n: expected numbers in 0..3, got"):
        _checks.integers("n", value, 0, 4, "numbers")


@pytest.mark.parametrize("value", [0, 7, np.int32(7)])
def test_whole(value):
    result = _checks.whole("n", value, 0)
    assert result == value
    assert type(result) is int


@pytest.mark.parametrize("value", [-1, 1.0, True, np.True_, "1", None, np.float64(2), [1]])
def test_whole_rejects(value):
    with pytest.raises(InputError, match=r"^n: expected a whole number >= 0, got"):
        _checks.whole("n", value, 0)


@pytest.mark.parametrize("value", [1, 0.5, 1e-300, np.float32(2), np.int64(3)])
def test_positive(value):
    result = _checks.positive("x", value)
    assert result == value
    assert type(result) is float


@pytest.mark.parametrize("value", [0, -1, np.inf, np.nan, True, np.True_, "1", None, [1.0], 1j])
def test_positive_rejects(value):
    with pytest.raises(InputError, match=r"^x: expected a positive finite number, got"):
        _checks.positive("x", value)


@pytest.mark.parametrize("value", [1e-300, 0.5, np.float64(0.999)])
def test_open_unit(value):
    result = _checks.open_unit("x", value)
    assert result == value
    assert type(result) is float


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.1, 1.1, np.nan, True, False, "0.5", None, [0.5]])
def test_open_unit_rejects(value):
    with pytest.raises(InputError, match=r"^x: expected a number strictly between 0 and 1, got"):
        _checks.open_unit("x", value)


def test_choice_gives_the_entry_and_lists_the_known():
    known = {"b": 2, "a": 1}
    assert _checks.choice("kind", "a", known) == 1
    for wrong in ("c", 1, None, ["a"]):
        with pytest.raises(InputError, match=r"^kind: .* is not known; known are a, b$"):
            _checks.choice("kind", wrong, known)


def test_an_input_error_is_a_value_error_and_one_of_ours():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, GosprlError)
