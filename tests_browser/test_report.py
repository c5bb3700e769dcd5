"""Reports in a real browser: charts draw and answer to the pointer, no request is made, nothing sticks out."""

import numpy as np
import pytest

import gosprl
from gosprl.envs import gridworld
from gosprl.report import report
from gosprl.runs.settings import Out

BAD = ["<script>document.title='run'</script>", "<img src=x onerror=document.title='run'>", "</script></svg><b>x"]
PHONE, DESKTOP = 390, 1280  # pixels
STRANGE = [*BAD, "\u202eright to left", "\u05e9\u05dc\u05d5\u05dd " * 8, "x" * 1_000_000, "\u4e16\u754c" * 30]


class Ring:
    """Strange observations in a ring."""

    def reset(self, seed=None, options=None):
        self.at = 0
        return STRANGE[0], {}

    def step(self, action):
        self.at = (self.at + (1 if action == BAD[0] else -1)) % len(STRANGE)
        return STRANGE[self.at], float(self.at), False, False, {}


def small(run):
    gosprl.collect("four_room43", 10, seed=0, out=run)
    return run


def large(run):
    grid = gridworld.open_grid(250, 400)
    return gosprl.collect(grid, 1, strategy="random", seed=0, max_steps=400_000)


def unfinished(run):
    gosprl.collect("room20", 20, seed=0, max_steps=300, out=Out(run, sync_steps=50))
    (run / "certificate.json").unlink()
    return run


def unreachable(run):
    P = np.zeros((4, 2, 4))
    P[0, :, 1] = P[1, :, 0] = P[2, :, 0] = P[3, :, 3] = 1
    gosprl.collect(gosprl.TabularMDP(P), 5, seed=0, out=run)
    return run


def damaged(run):
    gosprl.collect("room20", 20, seed=0, out=Out(run, sync_steps=50))
    [log] = run.glob("log/*.arrow")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(bytes(data))
    return run


def fleet(run):
    gosprl.collect("FrozenLake-v1", 5, seed=0, workers="threads:3", out=run)
    return run


def strange(run):
    return gosprl.collect(Ring(), 5, seed=0, actions=[BAD[0], "</table>"])


def answer(run):
    river = gosprl.envs.make("riverswim6")
    return gosprl.applications.learn_policy(river, gamma=0.8, epsilon=1.0, seed=0)


KINDS = (small, large, unfinished, unreachable, damaged, fleet, strange, answer)
ALWAYS = {"coverage", "visits", "the-learnt-system", "hitting-times"}
CHARTS = {  # the parts that have one, where they are not these; rewards have none if all are 0
    large: (ALWAYS - {"hitting-times"}) | {"what-is-missing"},
    fleet: ALWAYS | {"rewards", "walkers"},
    strange: ALWAYS | {"rewards"},
    answer: ALWAYS | {"rewards", "the-answer"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Kind -> file; each is made once."""
    made = {}

    def file(kind):
        if kind not in made:
            place = tmp_path_factory.mktemp(kind.__name__)
            made[kind] = report(kind(place / "run"), place / "page.html")
        return made[kind]

    return file


def drawn(look):
    """Wait until all charts have drawn; the parts that they are in."""
    look.page.wait_for_selector("html[data-drawn=yes]", state="attached", timeout=60_000)
    live, charts = look.page.locator(".chart[data-live=yes]").count(), look.page.locator(".chart").count()
    assert live == charts
    return set(look.page.evaluate("[...document.querySelectorAll('section:has(.chart)')].map((part) => part.id)"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_charts_draw_and_nothing_leaves_nor_complains_nor_sticks_out(kind, width, dark, files, look, picture):
    file = files(kind)
    seen = look(file, width, dark=dark)
    assert drawn(seen) == CHARTS.get(kind, ALWAYS)
    assert seen.page.evaluate("document.title") != "run"
    assert seen.requests == [file.as_uri()]
    assert seen.complaints == []
    assert seen.wider == [0, []]
    for chart in seen.page.locator(".chart").all():
        box = chart.locator("svg").first.bounding_box()
        assert box["width"] > 150
        assert box["height"] > 30
        assert chart.locator("svg path").count() >= 3
    picture(seen, f"{kind.__name__}-{'phone' if width == PHONE else 'desktop'}-{'dark' if dark else 'light'}")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_accessible_with_everything_unfolded(kind, files, look, violations):
    for width, dark in ((PHONE, True), (DESKTOP, False)):
        seen = look(files(kind), width, dark=dark, bypass=True)
        drawn(seen)
        seen.page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        assert violations(seen.page) == []


def test_the_pointer_shows_the_visits_of_a_state_as_text(files, look):
    seen = look(files(strange))
    drawn(seen)
    bar = seen.page.locator("#visits .chart .mark-rect path").first
    bar.scroll_into_view_if_needed()
    bar.hover()
    tip = seen.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "visits" in tip.inner_text()
    assert tip.locator("script, img, b").count() == 0
    assert seen.complaints == []


def test_the_pointer_shows_a_frequency_with_its_interval(files, look):
    seen = look(files(unreachable))
    drawn(seen)
    head = seen.page.locator("#the-learnt-system .chart .mark-symbol path[fill='#57606a']").first
    head.scroll_into_view_if_needed()
    head.hover()
    tip = seen.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "action 0: 1 [" in tip.inner_text()


def test_tables_unfold_by_pointer_and_keyboard(files, look):
    seen = look(files(small))
    drawn(seen)
    fold = seen.page.locator("#visits details")
    listed = fold.locator("table").first
    assert not listed.is_visible()
    fold.locator("summary").click()
    assert listed.is_visible()
    fold.locator("summary").press("Enter")
    assert not listed.is_visible()


def test_the_first_key_leads_to_the_content(files, look):
    seen = look(files(small))
    drawn(seen)
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.className") == "skip"
    seen.page.keyboard.press("Enter")
    assert seen.page.evaluate("location.hash") == "#content"


def test_without_scripts_the_pictures_are_there(files, look, picture):
    seen = look(files(small), PHONE, scripts=False)
    charts = seen.page.locator(".chart")
    assert charts.count() == len(ALWAYS)
    for chart in charts.all():
        assert chart.locator("svg").bounding_box()["height"] > 60
    picture(seen, "small-phone-without-scripts")


def test_charts_follow_the_width_of_the_window(files, look):
    seen = look(files(small), DESKTOP)
    drawn(seen)
    before = seen.page.locator("#coverage svg").bounding_box()["width"]
    seen.page.set_viewport_size({"width": PHONE, "height": 800})
    seen.page.wait_for_function(
        "before => document.querySelector('#coverage svg').getBoundingClientRect().width < before", arg=before - 100
    )
    assert seen.wider == [0, []]


def test_dark_pages_have_dark_charts(files, look):
    """No text of a chart is as dark as its background."""
    seen = look(files(small), dark=True)
    drawn(seen)
    lightness = """() => {
        const light = (colour) => {
            const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
            return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
        };
        const texts = [...document.querySelectorAll("#coverage .chart text")];
        return [light(getComputedStyle(document.body).backgroundColor),
                Math.min(...texts.map((text) => light(getComputedStyle(text).fill)))];
    }"""
    paper, ink = seen.page.evaluate(lightness)
    assert paper < 0.15
    assert ink > 0.45


def test_printed_pages_show_what_was_folded(files, look, tmp_path):
    seen = look(files(small))
    drawn(seen)
    seen.page.pdf(path=str(tmp_path / "page.pdf"))
    assert seen.page.locator("details:not([open])").count() == 0
    assert (tmp_path / "page.pdf").stat().st_size > 50_000
