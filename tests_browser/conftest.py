"""A real browser, Chromium as the distribution packages it, that looks at pages and notes what goes wrong."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1280, 844  # pixels
LEFT_OUT = {
    "landmark-unique",  # of the theme: its navigation names each section twice
}
OPTIONS = {"preload": False, "resultTypes": ["violations"]}  # style sheets are not fetched again, which a disk refuses


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="DIR", help="Keep pictures of the pages there.")


@pytest.fixture(scope="session")
def browser():
    """Chromium, without a window."""
    program = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if program is None:
        pytest.fail("these tests need Chromium; on Debian and Ubuntu: apt install chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


@dataclass
class Look:
    """A page in the browser: what it asked for, and what it complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def wider(self):
        """How many pixels the page is wider than the window, and which elements stick out of it."""
        return self.page.evaluate(
            """() => {
                const room = document.documentElement.clientWidth;
                const inside = (e) => {
                    for (let p = e.parentElement; p; p = p.parentElement)
                        if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(p).overflowX)) return true;
                    return false;
                };
                const out = [...document.body.querySelectorAll("*")].filter((e) => {
                    const box = e.getBoundingClientRect();
                    return box.width > 0 && box.right > room + 1 && !inside(e);
                });
                return [document.documentElement.scrollWidth - room, out.map((e) => e.outerHTML.slice(0, 99))];
            }"""
        )


@pytest.fixture
def look(browser):
    """(address or file, width, dark, scripts, bypass) -> `Look`, of a page that has been loaded."""
    contexts = []

    def open_page(address, width=WIDTH, *, dark=False, scripts=True, bypass=False):
        context = browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            bypass_csp=bypass,  # for scripts of the tests
            reduced_motion="reduce",
        )
        contexts.append(context)
        look = Look(context.new_page())
        look.page.on("request", lambda request: look.requests.append(request.url))
        look.page.on("pageerror", lambda error: look.complaints.append(str(error)))
        look.page.on(
            "console",
            lambda said: look.complaints.append(said.text) if said.type in ("error", "warning") else None,
        )
        look.page.goto(address if isinstance(address, str) else Path(address).as_uri())
        return look

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def picture(request):
    """(look, name): keep a picture of the whole page, if pictures are wanted."""
    directory = request.config.getoption("--screenshots")

    def keep(look, name):
        if directory:
            Path(directory).mkdir(parents=True, exist_ok=True)
            look.page.screenshot(path=str(Path(directory) / f"{name}.png"), full_page=True)

    return keep


@pytest.fixture(scope="session")
def violations():
    """What the accessibility checker finds on a page, one line each."""

    def found(page):
        each = Axe().run(page, options=OPTIONS).response["violations"]
        return [f"{one['id']}: {one['nodes'][0]['html']}" for one in each if one["id"] not in LEFT_OUT]

    return found
