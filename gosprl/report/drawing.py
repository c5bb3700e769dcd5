"""Charts as pictures: a static one for every reader, and the script that makes them answer to the pointer.

A chart is a Vega-Lite specification, a plain dictionary. vl-convert draws it as SVG without a browser, and has the
scripts (Vega, Vega-Lite, vega-embed) that draw the same specification in the page. Both show the same picture: the
static one is there before any script has run, without scripts, and on paper.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from gosprl.errors import InputError

INSTALL = "pip install 'gosprl[report]'"
Spec = dict[str, Any]
PLACES = re.compile(r' (?:d|transform)="[^"<>]*"')  # attributes of pictures that have coordinates
DIGITS = re.compile(r"(\.\d\d)\d+(?![\de])")  # of pixels: two decimals are all that anybody sees


def svg(spec: Mapping[str, Any]) -> str:
    """Return a chart as SVG, of the width that it has in the specification."""
    return PLACES.sub(lambda found: DIGITS.sub(r"\1", found[0]), str(converter().vegalite_to_svg(dict(spec))))


@cache
def scripts() -> str:
    """Return the scripts that draw charts in a page; they define `vegaEmbed`."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", str(converter().javascript_bundle()), flags=re.IGNORECASE)


def as_json(value: Any) -> str:
    """Return JSON that cannot end the script element that it is in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def converter() -> Any:
    """Return the package vl-convert; `InputError` if it is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise InputError(f"report: needs a package that is not installed ({error}); {INSTALL}") from None
    return vl_convert
