"""Defaults that pages state, beside those of the code.

    <!-- default gosprl.probe.level = 0.01 -->

says that the argument `level` of `gosprl.probe` has this default, and that the words of this part of the page state it.
"""

import ast
import importlib
import inspect
import re

STATED = re.compile(r"<!-- default (\S+) = (.*?) -->")


def of_code(name):
    """The default of an argument, by the name of its function or class and its own, with dots."""
    owner, _, argument = name.rpartition(".")
    parts = owner.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                found = getattr(found, part)
            return inspect.signature(found).parameters[argument].default
        except (ModuleNotFoundError, AttributeError, KeyError, TypeError):
            continue
    raise LookupError(f"{name} is no argument of the code")


def wrong_defaults(text):
    """What is wrong with the defaults that a page states, one line each."""
    wrong = []
    for part in re.split(r"\n\s*\n", text):
        words = STATED.sub(" ", part)
        for name, stated in STATED.findall(part):
            value = ast.literal_eval(stated)
            try:
                default = of_code(name)
            except LookupError as error:
                wrong.append(str(error))
                continue
            if default != value:
                wrong.append(f"{name}: the page says {value!r}, the code {default!r}")
            shown = value if isinstance(value, str) else f"{value:,}"
            if not re.search(rf"(?<![\w.,]){re.escape(shown)}(?![\w]|\.\d)", words):
                wrong.append(f"{name}: the words do not say {shown}")
    return wrong
