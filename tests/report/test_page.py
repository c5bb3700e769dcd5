"""A page asks the network for nothing, and nothing in data becomes markup or script."""

import base64
import hashlib
import re

import numpy as np
import pytest
from pages import page_of

import gosprl
from gosprl.report.text import short

HTML = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "</title></style></svg><b>bold</b>",
    '" onmouseover="alert(3)" x="',
    "<!--<script>",
    "]]>&lt;&amp;",
]
STRANGE = ["\u202eright to left", "\u05e9\u05dc\u05d5\u05dd", "x" * 1_000_000, "a\nb\x00\x1b[31m", "\ud800", ""]


class Ring:
    """Observations in a ring, whose rewards are as large as numbers get."""

    def __init__(self, observations):
        self.observations, self.at = observations, 0

    def reset(self, seed=None, options=None):
        self.at = 0
        return self.observations[0], {}

    def step(self, action):
        self.at = (self.at + (1 if action == 0 else -1)) % len(self.observations)
        return self.observations[self.at], 1.7e308 * (self.at % 3 - 1), False, False, {}


@pytest.fixture(scope="module")
def result():
    return gosprl.collect(Ring(HTML + STRANGE), 3, seed=0, actions=["<script>alert(4)</script>", "</table>"])


@pytest.fixture(scope="module")
def page(result):
    return page_of(result, title=HTML[1], command=HTML[0])


def policy_of(page):
    return next(a["content"] for a in page.attributes("meta") if a.get("http-equiv") == "Content-Security-Policy")


def test_only_our_scripts_can_run(page):
    kinds = [attributes.get("type") for attributes, _ in page.scripts]
    assert kinds == ["application/json", "module", "module"]
    policy = policy_of(page)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    allowed = re.search(r"script-src ([^;]*)", policy)[1].split()
    digests = [hashlib.sha256(content.encode()).digest() for _, content in page.scripts[1:]]
    assert allowed == [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


def test_nothing_is_loaded_and_nothing_listens(page):
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "embed", "link", "base", "form", "b")
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "action", "style")] or (
            tag == "svg"
        )
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")


def test_texts_from_data_are_shown_as_they_are_short_and_apart(page):
    assert any("<script>alert(1)</script>" in cell for row in page.rows for cell in row)
    assert any("(1,000,000 characters)" in cell for row in page.rows for cell in row)
    assert "\u202e" not in page.text
    assert "\x00" not in page.text
    assert "\x1b" not in page.text
    assert len(page.text) < 60_000
    named = {cell for row in page.rows for cell in row}
    assert any("\u05e9\u05dc\u05d5\u05dd" in cell for cell in named)
    assert len(page.attributes("bdi")) > 50


def test_rewards_that_overflow_are_no_trouble(result, page):
    with np.errstate(over="ignore"):
        assert not np.isfinite(result.model.reward_sq).all()
    assert "infinite" in page.text
    assert "rewards" in page.headings


def test_headings_are_linked_and_unique(page):
    anchors = [attributes["href"] for attributes in page.attributes("a")]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {anchor[1:] for anchor in anchors} <= set(ids)
    assert [tag for tag, _ in page.elements if tag in ("h1", "main", "nav", "header", "footer")] == [
        "header",
        "h1",
        "nav",
        "main",
        "footer",
    ]


def test_short_texts_say_what_was_cut_off():
    class Broken:
        def __str__(self):
            raise RuntimeError("no text")

    assert short("x" * 100, 10) == "xxxxxxxxxx… (100 characters)"
    assert "cannot be made: RuntimeError" in short(Broken())
