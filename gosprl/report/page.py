"""The page: one HTML file with its style, its pictures and its scripts, that asks the network for nothing.

A content security policy forbids every request, and every script but the two that are named by their digests: even if a
text from data were taken for markup, it could not run.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

import gosprl
from gosprl.report.charts import Chart
from gosprl.report.colours import dark_rules
from gosprl.report.drawing import as_json, scripts, svg
from gosprl.report.parts import Section
from gosprl.report.tables import Html
from gosprl.report.text import escaped, foreign


class Figures:
    """Makes the figures of one page: a static picture each, and the specification for the live one."""

    def __init__(self) -> None:
        self._specs: list[dict[str, object]] = []

    def __call__(self, chart: Chart, caption: str) -> Html:
        """Return a figure: the picture, what it shows, and what is left out."""
        i = len(self._specs)
        self._specs.append({"spec": chart.spec(), "aspect": chart.aspect, "below": chart.below, "widest": chart.widest})
        notes = "".join(f" {note}" for note in chart.notes)
        return Html(
            f'<figure><div class="chart" id="chart-{i}" role="img" aria-label="{escaped(chart.description, 400)}">'
            f"{svg(chart.spec())}</div><figcaption>{escaped(caption + notes, 1000)}</figcaption></figure>"
        )

    @property
    def data(self) -> str:
        """The specifications as JSON."""
        return as_json(self._specs)


def page(title: str, head: str, parts: Sequence[Section], figures: Figures) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        Of the window; text.
    head
        HTML above the parts.
    parts
        The parts.
    figures
        What made their figures.
    """
    library, own = scripts(), _resource("charts.js")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src {_digest(library)} {_digest(own)}"
    )
    links = "".join(f'<li><a href="#{part.anchor}">{escaped(part.title)}</a></li>' for part in parts)
    body = "".join(
        f'<section id="{part.anchor}" aria-labelledby="h-{part.anchor}">'
        f'<h2 id="h-{part.anchor}">{escaped(part.title)}</h2>{part.content}</section>'
        for part in parts
    )
    style = _resource("page.css").replace("/* dark charts */", dark_rules())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<meta name="generator" content="gosprl {gosprl.__version__}"><title>{escaped(title)}</title>'
        f"<style>{style}</style></head><body>"
        '<a class="skip" href="#content">Skip to the content</a>'
        f'<header>{head}</header><nav aria-label="Contents"><ol>{links}</ol></nav>'
        f'<main id="content">{body}</main>'
        f"<footer>Made by gosprl {gosprl.__version__}. This file needs no network.</footer>"
        f'<script type="application/json" id="specs">{figures.data}</script>'
        f'<script type="module">{library}</script><script type="module">{own}</script></body></html>\n'
    )


def heading(
    title: str, below: str, badge: tuple[str, str], numbers: Sequence[tuple[str, str]], said: Sequence[tuple[str, str]]
) -> Html:
    """Return what stands above the parts: title, state of the run, its most important numbers, warnings.

    Parameters
    ----------
    title, below
        Text; from data.
    badge
        (kind, text): kind is "good", "bad" or "open".
    numbers
        (name, value).
    said
        Warnings: (kind, text); kind is "damage" or nothing.
    """
    cards = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in numbers)
    notes = "".join(f'<p class="warning {kind}" role="note">{escaped(text, 2000)}</p>' for kind, text in said)
    return Html(
        f'<p class="kicker">gosprl report</p><h1>{foreign(title, 120)} '
        f'<span class="badge {badge[0]}">{escaped(badge[1])}</span></h1><p class="below">{foreign(below, 300)}</p>'
        f'{notes}<dl class="cards">{cards}</dl>'
    )


def _resource(name: str) -> str:
    return resources.files("gosprl.report").joinpath(name).read_text("utf-8")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
