"""The page has the same content in Markdown and in HTML, and contains no date."""

import re

import pytest
from experiments import made_up

from gosprl.experiments import page, stats
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.sweep import Results, fluid_limit, quick


def report(name, *, runs=12, failed=(), stopped=()):
    experiment = quick(EXPERIMENTS[name])
    results = made_up.results(experiment, lambda _, name: 500 + len(name), runs, stopped=stopped)
    return page.Report(experiment, results, runs, failed, True)


NAMES = ("table-dynamics", "table-costs", "fig-treasure", "fig-modest", "fig-diameter")


@pytest.fixture(scope="module")
def reports():
    return [report(name, failed=("riverswim6 x maxent, seed 3: it raised",)) for name in NAMES]


@pytest.fixture(scope="module")
def written(reports, tmp_path_factory):
    out = tmp_path_factory.mktemp("page")
    page.write(out, reports, "gosprl reproduce --quick")
    return (out / "index.md").read_text("utf-8"), (out / "index.html").read_text("utf-8")


def test_summary_of_steps():
    made = report("fig-treasure", stopped=("maxent",))
    rows = page.summary(made)
    assert len(rows) == len(made.experiment.algorithms) * len(made.experiment.cases)
    first, case = rows[0], made.experiment.cases[0]
    steps = made.results.steps(case.name, "gosprl")
    assert first["algorithm"] == "GOSPRL"
    assert first["mean"] == pytest.approx(steps.mean())
    assert first["low"] < first["mean"] < first["high"] < first["q90"] * 1.1
    assert first["ratio"] == pytest.approx(steps.mean() / fluid_limit(case))
    assert (first["met"], first["censored"]) == (12, "")
    maxent = next(row for row in rows if row["algorithm"] == "MaxEnt")
    most = made.results.steps(case.name, "maxent").max()
    assert (maxent["met"], maxent["censored"]) == (0, f"12 of 12 at {most:,.0f}")


def test_summary_of_errors_and_of_what_is_watched():
    made = report("fig-modest")
    error = made.results["wheel30", "gosprl"][0].curve[-1, 1]
    assert page.summary(made)[0]["error"] == pytest.approx(error, rel=0.1)
    assert "mean" not in page.summary(made)[0]
    trap = page.summary(report("table-costs"))[0]
    assert trap["watched_low"] <= trap["watched"] <= trap["watched_high"]


def test_what_stopped_runs_leave_open_is_marked_as_a_lower_bound():
    made = report("fig-treasure", stopped=("maxent",))
    runs = made.results["riverswim6", "random"]
    runs[0] = made_up.run(0, max(run.steps for run in runs), met=False)  # 1 of 12: nine in ten were not
    lines = {line.split(" | ")[1]: line.split(" | ") for line in page._summary_table(made) if "(6) |" in line}
    assert [lines["MaxEnt"][i].startswith("≥") for i in (3, 4, 6)] == [True, True, True]
    assert [lines["random walk"][i].startswith("≥") for i in (3, 4, 6)] == [True, False, True]
    assert "≥" not in "".join(lines["GOSPRL"])


def test_what_a_failure_says_is_not_taken_for_markup():
    made = report("fig-aggregation", failed=("room20/gosprl/0: TypeError: f.<locals>.<lambda>() of *x* and *y*",))
    assert "f.&lt;locals&gt;.&lt;lambda&gt;() of *x* and *y*" in page.as_html(page.markdown([made], "x"))


def test_every_claim_and_number_is_there(reports, written):
    text, _ = written
    for made in reports:
        assert f"{made.experiment.name}/figure.png" in text
        assert f"{made.experiment.name}/figure.pdf" in text
        for verdict in made.experiment.judge(made.experiment, made.results):
            for part in (verdict.claim, verdict.paper, verdict.ours, verdict.threshold, verdict.reason):
                assert part in text
        for row in page.summary(made):
            key = "error" if "error" in row else "mean"
            assert str(stats.Estimate(row[key], row["low"], row["high"])) in text
    assert "it raised" in text
    assert "gosprl reproduce --quick" in text


def test_counts_are_those_of_the_verdicts(reports, written):
    text, page_html = written
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    theirs = [row for row in rows if "Beyond the paper" not in row]
    counted = re.search(r"(\d+) claims of the paper: (\d+) confirmed, (\d+) not confirmed, (\d+) not comparable", text)
    words = ("confirmed", "not confirmed", "not comparable")
    expected = [len(theirs), *(sum(row.endswith(f"| {word} |") for row in theirs) for word in words)]
    assert [int(x) for x in counted.groups()] == expected
    assert sum(expected[1:]) == expected[0] > 0
    assert page_html.count('<td class="yes">confirmed</td>') == sum(row.endswith("| confirmed |") for row in rows)


def test_html_has_the_same_tables_and_needs_nothing_else(written):
    text, page_html = written
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("|---")]
    assert page_html.count("<table>") == len(heads)
    assert page_html.count("<tr>") == sum(line.startswith("|") for line in lines) - len(heads)
    assert "http" not in page_html
    assert "<script" not in page_html
    assert page_html.count('<img src="fig-treasure/figure.png"') == 1
    for name in NAMES:
        assert f'href="#{name}"' in page_html
        assert f'<a id="{name}">' in page_html


def test_the_same_runs_give_the_same_bytes(reports, written, tmp_path):
    page.write(tmp_path, reports, "gosprl reproduce --quick")
    assert ((tmp_path / "index.md").read_text("utf-8"), (tmp_path / "index.html").read_text("utf-8")) == written


def test_a_quick_look_says_so(reports):
    assert "quick look" in page.markdown(reports[:1], "x")
    whole = page.Report(reports[0].experiment, reports[0].results, 12, (), False)
    assert "quick look" not in page.markdown([whole], "x")


def test_no_runs_at_all():
    made = page.Report(EXPERIMENTS["fig-aggregation"], Results(), 30, (), False)
    assert page.summary(made) == []
    assert "No runs." in page.markdown([made], "x")


def test_long_tables_are_folded():
    experiment = EXPERIMENTS["fig-garnet"]
    made = page.Report(experiment, made_up.results(experiment, lambda *_: 5000.0, 2), 2, (), False)
    page_html = page.as_html("\n".join(page._summary_table(made)))
    assert "<details>" in page_html
    assert page_html.count("<tr>") == 1 + len(experiment.cases) * len(experiment.algorithms)
