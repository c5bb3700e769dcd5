"""Keys of states as text, and back.

The keys are those of `gosprl.model.content`. Their texts are JSON on one line, in ASCII:

| key | text |
|---|---|
| int, str, None, tuple | number, string, null, list |
| ``(bool, True)`` | ``{"bool": true}`` |
| ``(float, 0.5)``, ``(float, inf)`` | ``{"float": 0.5}``, ``{"float": "inf"}`` |
| ``(complex, 1j)`` | ``{"complex": [0.0, 1.0]}`` |
| bytes | ``{"bytes": base64}`` |
| ``(list, items)``, ``(frozenset, members)`` | ``{"list": [...]}``, ``{"set": [...]}`` |
| ``(dict, items)``; a tuple or a frozenset | ``{"dict": [[key, value], ...]}``, ``{"items": [[key, value], ...]}`` |
| ``(np.ndarray, dtype, shape, bytes)`` | ``{"array": [dtype, shape, base64]}`` |
| a str with surrogates; an int of more than 4,000 digits | ``{"str": hex of UTF-32}``, ``{"int": hex}`` |

Equal keys have equal texts and different keys have different ones. The members of sets are sorted by text.
"""

import base64
import json
import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable
from types import NoneType
from typing import Any

import numpy as np

from gosprl.errors import InputError
from gosprl.runs.files import no_constant

LIMIT = 16 * 2**20  # characters of a text
SHOWN = 10_000  # characters of what is shown to people
_DEPTH = 64
_BITS = 13_000  # of an int that is written in decimal: Python converts no more than 4,300 digits
_DTYPE = re.compile(r"[<>|][biufcSU][0-9]{1,9}|[<>][mM]8(\[[0-9]{0,9}[a-zA-Z]{1,2}\])?")
_WAY_OUT = "give key=, a function (observation, info) -> numbers, strings or tuples of them"


def text_of(key: Hashable) -> str:
    """Return a key as text.

    Raises
    ------
    InputError
        If it contains a type that text does not hold, is nested deeper than 64 levels, or longer than 16 MiB.
    """
    text = _text(key, _DEPTH)
    if len(text) > LIMIT:
        raise InputError(
            f"out: an observation of {len(text)} characters cannot be stored (at most {LIMIT}); {_WAY_OUT}"
        )
    return text


def key_of(text: str) -> Hashable:
    """Return the key with this text; nothing is imported or executed.

    Raises
    ------
    ValueError
        If the text is not exactly what `text_of` returns for some key.
    """
    if len(text) > LIMIT:
        raise ValueError(f"a key of {len(text)} characters; at most {LIMIT} are read")
    try:
        key = _key(json.loads(text, parse_constant=no_constant), _DEPTH)
        same = text_of(key) == text  # also finds duplicates, spaces and other spellings
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not the text of a key ({error}): {text:.80}") from None
    if not same:
        raise ValueError(f"not the text of a key (another spelling of one): {text:.80}")
    return key


def plain_of(value: Any) -> str:
    """Return an observation as JSON for people, cut after 10,000 characters. It never fails, and need not be exact."""
    try:
        text = json.dumps(_plain(value, _DEPTH), ensure_ascii=False)
    except Exception:  # of the observation's own methods
        text = json.dumps(f"<{type(value).__name__}>")
    return text[:SHOWN].encode("utf-8", "backslashreplace").decode()[:SHOWN]


def _text(key: Any, depth: int) -> str:
    kind = type(key)
    if kind is int:
        return str(key) if key.bit_length() <= _BITS else _tagged("int", json.dumps(hex(key)))
    if kind is str:
        return _text_of_str(key)
    if key is None:
        return "null"
    if kind is bytes:
        return _tagged("bytes", _base64(key))
    if kind is not tuple:
        raise _unknown(kind)
    if depth == 0:
        raise InputError(f"out: an observation nested deeper than {_DEPTH} levels cannot be stored; {_WAY_OUT}")
    if key and isinstance(key[0], type):
        return _text_of_typed(key[0], key[1:], depth - 1)
    return _joined(_text(part, depth - 1) for part in key)


def _text_of_str(key: str) -> str:
    # JSON cannot tell a pair of surrogates from the one character that they encode
    if key.isascii() or not any("\ud800" <= c <= "\udfff" for c in key):
        return json.dumps(key)
    return _tagged("str", json.dumps(key.encode("utf-32-be", "surrogatepass").hex()))


def _text_of_typed(kind: type, rest: tuple[Any, ...], depth: int) -> str:
    if kind is np.ndarray and len(rest) == 3:
        dtype, shape, data = rest
        return _tagged("array", _joined([json.dumps(dtype), _joined(map(str, shape)), _base64(data)]))
    rule = _TEXTS.get(kind)
    if rule is None or len(rest) != 1:
        raise _unknown(kind)
    return rule(rest[0], depth)


def _text_of_bool(value: bool, _: int) -> str:
    return _tagged("bool", "true" if value else "false")


def _text_of_float(value: float, _: int) -> str:
    return _tagged("float", _number(value))


def _text_of_complex(value: complex, _: int) -> str:
    return _tagged("complex", _joined([_number(value.real), _number(value.imag)]))


def _text_of_list(items: tuple[Any, ...], depth: int) -> str:
    return _tagged("list", _joined(_text(item, depth) for item in items))


def _text_of_dict(items: Any, depth: int) -> str:
    if type(items) is tuple:
        return _tagged("dict", _joined(_text(item, depth) for item in items))
    return _tagged("items", _joined(sorted(_text(item, depth) for item in items)))


def _text_of_set(members: frozenset[Any], depth: int) -> str:
    return _tagged("set", _joined(sorted(_text(member, depth) for member in members)))


_TEXTS: dict[type, Callable[[Any, int], str]] = {
    bool: _text_of_bool,
    float: _text_of_float,
    complex: _text_of_complex,
    list: _text_of_list,
    dict: _text_of_dict,
    frozenset: _text_of_set,
}


def _tagged(tag: str, text: str) -> str:
    return f'{{"{tag}": {text}}}'


def _joined(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _number(x: float) -> str:
    if math.isnan(x):
        raise InputError(f"out: an observation with NaN cannot be stored, as it equals nothing; {_WAY_OUT}")
    return f'"{x}"' if math.isinf(x) else repr(x + 0.0)  # -0.0 and 0.0 are equal, and get one text


def _unknown(kind: type) -> InputError:
    return InputError(f"out: an observation of type {kind.__name__} cannot be stored with its meaning; {_WAY_OUT}")


def _key(value: Any, depth: int) -> Hashable:
    """Return the key of parsed JSON."""
    if type(value) in (int, str, NoneType):
        return value  # type: ignore[no-any-return]
    if depth == 0:
        raise ValueError("nested too deeply")
    if type(value) is list:
        return tuple([_key(part, depth - 1) for part in value])
    if type(value) is not dict or len(value) != 1:
        raise ValueError("an object needs one known tag")
    ((tag, content),) = value.items()
    if tag not in _KEYS:
        raise ValueError("an object needs one known tag")
    return _KEYS[tag](content, depth - 1)


def _key_of_bool(value: Any, _: int) -> Hashable:
    return bool, _of(bool, value)


def _key_of_float(value: Any, _: int) -> Hashable:
    return float, _float(value)


def _key_of_complex(value: Any, _: int) -> Hashable:
    real, imaginary = _of(list, value)
    return complex, complex(_float(real), _float(imaginary))


def _key_of_bytes(value: Any, _: int) -> Hashable:
    return base64.b64decode(_of(str, value), validate=True)


def _key_of_list(value: Any, depth: int) -> Hashable:
    return list, _each(value, depth)


def _key_of_dict(value: Any, depth: int) -> Hashable:
    return dict, _pairs(value, depth)


def _key_of_items(value: Any, depth: int) -> Hashable:
    return dict, frozenset(_pairs(value, depth))


def _key_of_set(value: Any, depth: int) -> Hashable:
    return frozenset, frozenset(_each(value, depth))


def _key_of_array(value: Any, _: int) -> Hashable:
    dtype, shape, data = _of(list, value)
    shape = tuple([_of(int, n) for n in _of(list, shape)])
    data = base64.b64decode(_of(str, data), validate=True)
    _check_array(_of(str, dtype), shape, data)
    return np.ndarray, dtype, shape, data


def _key_of_str(value: Any, _: int) -> Hashable:
    return bytes.fromhex(_of(str, value)).decode("utf-32-be", "surrogatepass")


def _key_of_int(value: Any, _: int) -> Hashable:
    return int(_of(str, value), 16)


_KEYS: dict[str, Callable[[Any, int], Hashable]] = {
    "bool": _key_of_bool,
    "float": _key_of_float,
    "complex": _key_of_complex,
    "bytes": _key_of_bytes,
    "list": _key_of_list,
    "dict": _key_of_dict,
    "items": _key_of_items,
    "set": _key_of_set,
    "array": _key_of_array,
    "str": _key_of_str,
    "int": _key_of_int,
}


def _each(value: Any, depth: int) -> tuple[Hashable, ...]:
    return tuple([_key(part, depth) for part in _of(list, value)])


def _pairs(value: Any, depth: int) -> tuple[Hashable, ...]:
    if any(type(pair) is not list or len(pair) != 2 for pair in _of(list, value)):
        raise ValueError("a dict needs pairs of a key and a value")
    return _each(value, depth)


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _float(value: Any) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    if not math.isfinite(_of(float, value)):
        raise ValueError("a float out of range")
    return value  # type: ignore[no-any-return]


def _check_array(text: str, shape: tuple[int, ...], data: bytes) -> None:
    """Raise unless the bytes are an array of this type and shape."""
    if not _DTYPE.fullmatch(text):
        raise ValueError("an array of an unknown dtype")
    dtype = np.dtype(text)
    if dtype.str != text or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("an array whose bytes do not fit its shape")
    np.ndarray(shape, dtype, data)  # raises for shapes that NumPy does not hold
    if dtype.kind == "b" and max(data, default=0) > 1:
        raise ValueError("an array of truth values that are neither true nor false")
    if dtype.kind == "U" and np.frombuffer(data, np.dtype(text[0] + "u4")).max(initial=0) > sys.maxunicode:
        raise ValueError("an array with a number that is no character")


def _plain(value: Any, depth: int) -> Any:
    """Return a value that JSON can express."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray):
        return value.ravel()[:SHOWN].tolist() if value.size > SHOWN else _plain(value.tolist(), depth)
    if depth == 0:
        return str(value)
    if isinstance(value, dict):
        return {k if type(k) is str else str(k): _plain(v, depth - 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part, depth - 1) for part in list(value)[:SHOWN]]
    return int(value) if isinstance(value, np.integer) else str(value)
