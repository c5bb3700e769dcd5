"""The page of a reproduction: figures, tables, and each claim of the paper with its verdict.

The page is `index.md`, and `index.html` made from it. Neither contains a date or anything about the machine, so the
same runs give the same bytes.
"""

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import gosprl
from gosprl.experiments import claims, stats, store
from gosprl.experiments.algorithms import ALGORITHMS, PAPER
from gosprl.experiments.sweep import CENSORED_AT, PILOT, Case, Experiment, Results, Run, Verdict, fluid_limit

TITLE = "The experiments of the paper, reproduced"
FOLDED = 24  # a table with at least this many rows is shown folded
STEPS = ("case", "algorithm", "runs", "steps, mean (95 %)", "90 % quantile", "fluid limit", "mean / limit", "stopped")
Row = dict[str, str | float]


@dataclass(frozen=True)
class Report:
    """An experiment and the outcome of its runs."""

    experiment: Experiment
    results: Results
    runs: int  # the number asked for
    failed: tuple[str, ...]  # runs that failed, with their errors
    quick: bool

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdicts on the experiment's claims."""
        return self.experiment.judge(self.experiment, self.results)


def summary(report: Report) -> list[Row]:
    """Return one row for each (case, algorithm) with runs; cases with a horizon have an error instead of steps."""
    rows = []
    for case in report.experiment.cases:
        for name in report.experiment.algorithms:
            if runs := report.results.get((case.name, name)):
                row: Row = {"case": case.title, "algorithm": ALGORITHMS[name].label, "runs": len(runs)}
                rows.append(row | (_errors(runs) if case.horizon else _steps(case, runs)))
    return rows


def _steps(case: Case, runs: Sequence[Run]) -> Row:
    steps = [run.steps for run in runs]
    mean, met, limit = stats.mean(steps), sum(run.met for run in runs), fluid_limit(case)
    row: Row = {
        "met": met,
        "censored": f"{len(runs) - met} of {len(runs)} at {max(steps):,}" if met < len(runs) else "",
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
        "q90": stats.quantile90(steps),
        "limit": limit,
        "ratio": mean.value / limit,
    }
    if case.watch:
        watched = stats.mean([run.watched for run in runs])
        row |= {"watched": watched.value, "watched_low": watched.low, "watched_high": watched.high}
    return row


def _errors(runs: Sequence[Run]) -> Row:
    error = stats.mean([run.curve[-1, 1] for run in runs])
    return {"steps": max(run.steps for run in runs), "error": error.value, "low": error.low, "high": error.high}


def write(out: Path, reports: list[Report], command: str) -> None:
    """Write index.md and index.html to `out`, where the figures are NAME/figure.png and NAME/figure.pdf."""
    text = markdown(reports, command)
    store.write(out / "index.md", text.encode())
    store.write(out / "index.html", as_html(text).encode())


def markdown(reports: Sequence[Report], command: str) -> str:
    """Return the page as Markdown; `command` is what made it."""
    lines = [f"# {TITLE}", "", f"Made by `{command}` with gosprl {gosprl.__version__}.", "", *_settings()]
    if any(report.quick for report in reports):
        lines += ["", "**A quick look**: few cases and short horizons. Verdicts are about these only."]
    lines += ["", "## Verdicts", "", *_counts([verdict for report in reports for verdict in report.verdicts]), ""]
    lines += _table(
        ("experiment", "claim", "paper", "ours", "verdict"),
        (
            (f"[{report.experiment.name}](#{report.experiment.name})", each.claim, each.paper, each.ours, each.verdict)
            for report in reports
            for each in report.verdicts
        ),
    )
    for report in reports:
        lines += ["", *_section(report)]
    return "\n".join(lines) + "\n"


def _settings() -> list[str]:
    settings = ", ".join(f"{key} = {value}" for key, value in PAPER.items())
    return [
        "A pair is a state and an action; its need b(s,a) is the number of samples needed of it. An algorithm runs "
        "until every need is met, and is judged by the number of its steps.",
        "",
        f"GOSPRL and its rivals have the paper's settings ({settings}); our default, `guarded`, has its own, which "
        f"keep its guarantee. A run is stopped at {CENSORED_AT} times the mean steps of the first {PILOT} runs of the "
        "reference algorithm, and counts with the steps it made. This favours the stopped algorithm, and ≥ marks "
        "numbers that are only lower bounds. Intervals are 95 % by the percentile bootstrap, "
        f"{stats.RESAMPLES} resamples. The fluid limit is a lower bound on the expected steps of any algorithm. "
        "Thresholds were fixed before the runs were made, unless a claim says otherwise.",
    ]


def _counts(verdicts: Sequence[Verdict]) -> list[str]:
    ours = [each for each in verdicts if each.claim.startswith(claims.BEYOND)]
    theirs = [each for each in verdicts if not each.claim.startswith(claims.BEYOND)]
    return [
        f"{len(theirs)} claims of the paper: {_count(theirs)}. Beyond the paper, {len(ours)} of ours: {_count(ours)}."
    ]


def _count(verdicts: Sequence[Verdict]) -> str:
    count = Counter(each.verdict for each in verdicts)
    return ", ".join(f"{count[word]} {word}" for word in claims.VERDICTS)


def _section(report: Report) -> list[str]:
    experiment = report.experiment
    picture = f"{experiment.name}/figure"
    lines = [
        *(f'<a id="{experiment.name}"></a>', "", f"## {experiment.title}", ""),
        *(f"{experiment.paper}; here `{experiment.name}`. {experiment.text}", ""),
        *(f"![{experiment.title}]({picture}.png)", "", f"[The figure as PDF]({picture}.pdf)", ""),
        *_summary_table(report),
        *("", "### Claims", ""),
        *(line for each in report.verdicts for line in _claim(each)),
    ]
    if report.failed:
        lines += ["", "### Failed runs", "", *(f"- `{each}`" for each in report.failed)]
    return lines


def _claim(verdict: Verdict) -> list[str]:
    return [
        f"- **{verdict.verdict}**: {verdict.claim}",
        f"    - paper: {verdict.paper}",
        f"    - ours: {verdict.ours}",
        *([f"    - confirmed if: {verdict.threshold}"] if verdict.threshold else []),
        *([f"    - {verdict.reason}"] if verdict.reason else []),
    ]


def _summary_table(report: Report) -> list[str]:
    rows = summary(report)
    if not rows:
        return ["No runs."]
    table = _error_table(rows) if "error" in rows[0] else _steps_table(rows)
    if len(rows) < FOLDED:
        return table
    return ["<details>", f"<summary>All {len(rows)} rows</summary>", "", *table, "", "</details>"]


def _error_table(rows: Sequence[Row]) -> list[str]:
    head = ("case", "algorithm", "runs", "steps", "error at the end (95 %)")
    return _table(head, ((*_named(row), f"{row['steps']:,}", _interval(row, "error")) for row in rows))


def _steps_table(rows: Sequence[Row]) -> list[str]:
    watched = ["trap visits, mean (95 %)"] if "watched" in rows[0] else []
    return _table(
        [*STEPS, *watched],
        (
            [
                *(*_named(row), _at_least(row) + _interval(row, "mean")),
                _at_least(row, 0.9) + stats.number(float(row["q90"])),
                stats.number(float(row["limit"])),
                _at_least(row) + stats.number(float(row["ratio"])),
                str(row["censored"]),
                *(_interval(row, "watched", "watched_") for _ in watched),
            ]
            for row in rows
        ),
    )


def _at_least(row: Row, share: float = 1.0) -> str:
    """Return a mark if fewer than this share of the runs met their need; the stopped runs are the longest ones."""
    return "" if float(row["met"]) >= share * float(row["runs"]) else "≥ "


def _named(row: Row) -> tuple[str, str, str]:
    return str(row["case"]), str(row["algorithm"]), str(row["runs"])


def _interval(row: Row, key: str, prefix: str = "") -> str:
    return str(stats.Estimate(float(row[key]), float(row[f"{prefix}low"]), float(row[f"{prefix}high"])))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = (" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows)
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {line} |" for line in lines)]


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
img { max-width: 100%; } code { background: #f3f3f3; padding: 0 .2em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid #ddd; min-width: 5rem; }
th { border-bottom: 2px solid #888; } li ul { color: #555; font-size: 13px; }
.yes { color: #00694c; font-weight: 600; } .no { color: #a63c00; font-weight: 600; } .open { color: #666; }
"""


def as_html(text: str) -> str:
    """Return the page as a self-contained HTML file."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    body = body.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    for word, mark in zip(claims.VERDICTS, ("yes", "no", "open"), strict=True):
        body = body.replace(f"<td>{word}</td>", f'<td class="{mark}">{word}</td>')
        body = body.replace(f"<strong>{word}</strong>", f'<strong class="{mark}">{word}</strong>')
    head = f'<meta charset="utf-8">\n<title>{html.escape(TITLE)}</title>\n<style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'
