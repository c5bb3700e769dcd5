"""What a text may stand for: an observation or an action value that was written as JSON, or is text itself."""

import json
from typing import Any


def meanings(text: Any) -> list[Any]:
    """Return what a text may stand for, the likeliest first: JSON with lists as tuples, JSON, the text itself."""
    if not isinstance(text, str):
        return [text]
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    as_tuples = _tuples(parsed)
    options = [as_tuples] if type(as_tuples) is type(parsed) else [as_tuples, parsed]
    return options if isinstance(parsed, str) else [*options, text]


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple([_tuples(part) for part in value])
    return {name: _tuples(part) for name, part in value.items()} if isinstance(value, dict) else value
