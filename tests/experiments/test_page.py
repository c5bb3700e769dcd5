"""The page has the same content in Markdown and in HTML, and contains no date."""

import re
from pathlib import Path

import numpy as np
import pytest
from experiments import made_up

from gosprl.experiments import claims, page, stats
from gosprl.experiments.algorithms import FITTED, STATED
from gosprl.experiments.catalogue import EXPERIMENTS
from gosprl.experiments.sweep import Results, fluid_limit, quick


def report(name, *, runs=12, failed=(), stopped=()):
    experiment = quick(EXPERIMENTS[name])
    results = made_up.at_both_widths(experiment, lambda _, name: 500 + len(name), runs, stopped=stopped)
    return page.Report(experiment, results, runs, failed, True)


ROOT = Path(__file__).parents[2]
NAMES = ("table-dynamics", "table-costs", "fig-treasure", "fig-modest", "fig-diameter", "fig-variants")


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
    assert len(rows) == len(made.experiment.all_algorithms) * len(made.experiment.cases)
    first, case = rows[0], made.experiment.cases[0]
    assert [row["sets"] for row in rows[:3]] == ["x 0.1", "fitted to Table 2", "-"]
    assert rows[1]["mean"] == pytest.approx(made.results.steps(case.name, "gosprl-fitted").mean())
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
    assert trap["trap visits, low"] <= trap["trap visits"] <= trap["trap visits, high"]


def test_summary_of_other_measures():
    made = report("fig-variants")
    row, runs = page.summary(made)[0], made.results["riverswim6", "gosprl"]
    assert row["steps of the initial phase"] == pytest.approx(np.mean([run.curve[1, 0] for run in runs]))
    head = page._summary_table(made)[3]
    for title in made.experiment.measures:
        assert f"| {title}, mean (95 %)" in head


def test_what_stopped_runs_leave_open_is_marked_as_a_lower_bound():
    made = report("fig-treasure", stopped=("maxent",))
    runs = made.results["riverswim6", "random"]
    runs[0] = made_up.run(0, max(run.steps for run in runs), met=False)  # 1 of 12: nine in ten were not
    rows = [line.split(" | ") for line in page._summary_table(made) if "(6) |" in line]
    lines = {row[1]: row for row in rows if row[2] in ("x 0.1", "-")}
    assert [lines["MaxEnt"][i].startswith("≥") for i in (4, 5, 7)] == [True, True, True]
    assert [lines["random walk"][i].startswith("≥") for i in (4, 5, 7)] == [True, False, True]
    assert "≥" not in "".join(lines["GOSPRL"])


def test_what_a_failure_says_is_not_taken_for_markup():
    made = report("fig-aggregation", failed=("room20/gosprl/0: TypeError: f.<locals>.<lambda>() of *x* and *y*",))
    assert "f.&lt;locals&gt;.&lt;lambda&gt;() of *x* and *y*" in page.as_html(page.markdown([made], "x"))


def test_every_claim_and_number_is_there(reports, written):
    text, _ = written
    for made in reports:
        for figure in ("figure.png", "figure-fitted.png", "summary.csv"):
            assert f"{made.experiment.name}/{figure}" in text
        for width in (STATED, FITTED):
            for verdict in made.experiment.judge(made.experiment, made.experiment.at(width, made.results)):
                for part in (verdict.claim, verdict.paper, verdict.ours, verdict.threshold, verdict.reason):
                    assert part in text
        for row in page.summary(made):
            key = "error" if "error" in row else "mean"
            assert str(stats.Estimate(row[key], row["low"], row["high"])) in text
    assert "it raised" in text
    assert "gosprl reproduce --quick" in text


def verdict_rows(text):
    """The cells of the table of verdicts: claim, and a word for each width."""
    table = text.partition("## Verdicts")[2].partition("<details>")[2].partition("</details>")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return [row for row in rows if not row[0].startswith("[**")]


def test_counts_are_those_of_the_verdicts(reports, written):
    text, page_html = written
    rows = verdict_rows(text)
    assert len(rows) == sum(len(made.claims) for made in reports)
    counted = re.findall(
        r"(\d+) claims of the paper: (\d+) confirmed, (\d+) not confirmed, (\d+) undecided, (\d+) not comparable", text
    )
    theirs = [row for row in rows if not row[0].startswith((claims.BEYOND, claims.SOURCE))]
    for i, numbers in enumerate(counted, 1):
        expected = [len(theirs), *(sum(row[i] == word for row in theirs) for word in claims.VERDICTS)]
        assert [int(x) for x in numbers] == expected
        assert sum(expected[1:]) == expected[0] > 0
    assert len(counted) == 2
    confirmed = sum(row[i] == "confirmed" for row in rows for i in (1, 2))
    assert page_html.count('<td class="yes">confirmed</td>') == confirmed > 0


def test_each_width_has_a_verdict_of_its_own():
    experiment = quick(EXPERIMENTS["fig-treasure"])
    slow = {"gosprl": 2000, "zero-one-ucrl": 1000, "gosprl-fitted": 500, "zero-one-ucrl-fitted": 1000}
    results = made_up.at_both_widths(experiment, lambda _, name: slow.get(name, 3000))
    text = page.markdown([page.Report(experiment, results, 12, (), True)], "x")
    assert ["GOSPRL is faster than 0/1-UCRL", "not confirmed", "confirmed"] in verdict_rows(text)
    assert "(x 0.1) **not confirmed**" in text
    assert "(fitted to Table 2) **confirmed**" in text


def test_what_does_not_depend_on_the_width_is_said_once(reports):
    lines = page._claims(reports[0])
    bound = lines.index("- B D, RiverSwim(6)")
    assert lines[bound + 2 : bound + 4] == ["    - **confirmed**", "    - ours: 1,766.68"]


def test_figures_of_both_widths_are_in_one_paragraph_and_say_which(written):
    _, page_html = written
    (pair,) = [part for part in page_html.split('<p class="figures">') if 'src="fig-treasure/figure.png"' in part]
    assert pair.index("fig-treasure/figure.png") < pair.index("fig-treasure/figure-fitted.png") < pair.index("</p>")
    assert "radius x 0.1, as the paper states" in pair
    assert "fitted to Table 2" in pair
    assert 'name="viewport"' in page_html


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
    assert text.count("<details>") == text.count("</details>") >= len(NAMES)


def skeleton(text):
    """The lines of a page that do not depend on the runs: headings, what is folded, figures, heads of tables."""
    return [line for line in text.splitlines() if re.match(r"#|<|\|---|\| case |\| claim |The same with|Beside", line)]


def test_the_committed_page_is_laid_out_as_the_command_lays_it_out():
    made = [
        page.Report(each, made_up.at_both_widths(each, lambda _, name: 500 + len(name), 2), 10, (), False)
        for each in EXPERIMENTS.values()
    ]
    committed = (ROOT / "docs/reproduction/index.md").read_text("utf-8")
    assert skeleton(page.markdown(made, "x")) == skeleton(committed)
    assert skeleton(committed.replace("<details>", "", 1)) != skeleton(committed)


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
    made = page.Report(experiment, made_up.at_both_widths(experiment, lambda *_: 5000.0, 2), 2, (), False)
    page_html = page.as_html("\n".join(page._summary_table(made)))
    assert "<details>" in page_html
    assert page_html.count("<tr>") == 1 + len(experiment.cases) * len(experiment.all_algorithms)
