"""The documentation in a real browser, from a disk and from a server: quiet, alone, searchable, readable on a phone."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PHONE, DESKTOP = 390, 1280  # pixels
LOOKED_AT = (  # a page of each kind; the others are made from the same parts
    "index.html",
    "tutorials/first.html",
    "howto/index.html",
    "howto/learn_policy.html",
    "howto/not_for.html",
    "theory/sets.html",
    "theory/guarded.html",
    "results.html",
    "speed.html",
    "paper.html",
    "reproduction/index.html",
    "evidence/coverage.html",
    "benchmarks/index.html",
    "reference/commands.html",
    "reference/names.html",
    "faq.html",
    "glossary.html",
)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built anew."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


@pytest.fixture(scope="session")
def server(site):
    """The site's address, from a server on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()


def all_pages(site):
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")  # it is for servers


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_no_page_complains_asks_outside_or_sticks_out(site, look, width):
    seen = look(site / "index.html", width)
    wide = {}
    for path in all_pages(site):
        seen.page.goto(path.as_uri())
        by, elements = seen.wider
        if by > 0 or elements:
            wide[path.name] = (by, elements)
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert wide == {}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_it_is_accessible_on_a_phone_and_in_the_dark(site, look, picture, violations, name):
    for width, dark in ((PHONE, False), (DESKTOP, True)):
        seen = look(site / name, width, dark=dark)
        seen.page.wait_for_timeout(50)  # scripts that run after the page was loaded
        assert violations(seen.page) == []
        assert seen.page.locator("h1").count() == 1
        picture(seen, f"site-{name.replace('/', '-').removesuffix('.html')}-{width}")


def test_what_is_not_accessible_is_found_out(site, look, violations):
    seen = look(site / "faq.html")
    seen.page.evaluate(
        """() => {
            const text = document.querySelector(".md-content p")
            text.style.color = "#ccc"
            text.insertAdjacentHTML("afterend", "<h5>A heading that leaves levels out</h5><img src='demo.svg'>")
        }"""
    )
    kinds = {line.partition(":")[0] for line in violations(seen.page)}
    assert {"color-contrast", "heading-order", "image-alt"} <= kinds
    seen.page.evaluate("() => document.querySelector('.md-content p').style.width = '3000px'")
    assert seen.wider[0] > 0


QUESTIONS = re.findall(r"^## (.*)", (ROOT / "docs/faq.md").read_text().replace("`", ""), re.MULTILINE)


@pytest.mark.parametrize("where", ["disk", "server"])
def test_search_finds_the_questions(site, server, look, where):
    seen = look(site / "index.html" if where == "disk" else server)
    assert len(QUESTIONS) == 10
    for question in QUESTIONS:
        box = seen.page.locator("input.md-search__input")
        box.click()
        box.fill("")
        box.press_sequentially(question)
        heading = seen.page.locator(".md-search-result__item", has_text=question).first
        heading.wait_for(state="attached", timeout=10_000)
        assert "faq.html" in heading.locator("a").first.get_attribute("href")
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith((server, "file:", "data:", "blob:"))] == []


def test_search_finds_something_for_every_letter(site, look):
    """An index with parts that are mistaken for each other fails for the letters that lead to them."""
    seen = look(site / "index.html")
    box = seen.page.locator("input.md-search__input")
    box.click()
    meta = "document.querySelector('.md-search-result__meta').innerText"
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
        box.press_sequentially(letter)
        seen.page.wait_for_function(f"() => /^\\d.* matching/.test({meta})")
        box.press("Backspace")
        seen.page.wait_for_function(f"() => !/matching/.test({meta})")
    assert seen.complaints == []


def test_what_is_folded_unfolds_and_has_its_table(site, look):
    seen = look(site / "reproduction/index.html", PHONE)
    verdicts = seen.page.locator("details").first
    assert "claims, with their verdicts" in verdicts.locator("summary").inner_text()
    assert not verdicts.locator("table").is_visible()
    verdicts.locator("summary").click()
    assert verdicts.locator("table").is_visible()
    folded = seen.page.locator("details").count()
    assert seen.page.locator("details", has=seen.page.locator("table, li")).count() == folded
    assert seen.page.locator(".figures").count() == 10
    for figures in seen.page.locator(".figures").all():
        assert figures.locator("img").count() == 2
