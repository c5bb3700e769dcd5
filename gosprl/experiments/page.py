"""The page of a reproduction: each claim of the paper with its verdict at each width of the sets, figures and tables.

The page is `index.md`, and `index.html` made from it. Neither contains a date or anything about the machine, so the
same runs give the same bytes. All verdicts are in one folded table at the top, below their counts. Each experiment then
has its figures, one for each width, side by side where there is room, and its tables and the numbers behind its
verdicts, folded. The page needs only the figures as PNG and summary.csv, so that a copy can leave the rest out.
"""

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import gosprl
from gosprl.experiments import claims, stats, store
from gosprl.experiments.algorithms import ALGORITHMS, FITTED, PAPER, STATED, Width, at
from gosprl.experiments.sweep import CENSORED_AT, PILOT, Case, Experiment, Results, Run, Verdict, fluid_limit

TITLE = "The experiments of the paper, reproduced"
FOLDED = 12  # a table with at least this many rows is shown folded
STEPS = ("steps, mean (95 %)", "90 % quantile", "fluid limit", "mean / limit", "stopped")
PICTURE_WIDTH = 480  # pixels of a figure in the Markdown page, so that two are side by side where there is room
FILES = (
    "Beside what this page shows, the command writes each figure as PDF (`NAME/figure.pdf`, `NAME/figure-fitted.pdf`) "
    "and one row per run (`NAME/runs.csv`), NAME being the name of the experiment. The copy of this page in the "
    "repository leaves them out; the command above makes them again."
)
Row = dict[str, str | float]


@dataclass(frozen=True)
class Report:
    """An experiment and the outcome of its runs."""

    experiment: Experiment
    results: Results
    runs: int  # the number asked for
    failed: tuple[str, ...]  # runs that failed, with their errors
    quick: bool

    def at(self, width: Width) -> Results:
        """Return the runs at a width, by the names that algorithms have in the experiment."""
        return self.experiment.at(width, self.results)

    @cached_property
    def claims(self) -> list[tuple[Verdict, ...]]:
        """For each claim of the experiment, the verdicts at its widths."""
        experiment = self.experiment
        judged = [experiment.judge(experiment, self.at(width)) for width in experiment.widths]
        return list(zip(*judged, strict=True))

    def verdicts(self, width: Width) -> list[Verdict]:
        """Return the verdicts at one of the widths."""
        place = self.experiment.widths.index(width)
        return [claim[place] for claim in self.claims]


def summary(report: Report) -> list[Row]:
    """Return one row for each case, algorithm and width with runs; cases with a horizon have an error, not steps."""
    rows = []
    for case in report.experiment.cases:
        for algorithm in report.experiment.algorithms:
            for name, sets in _at_widths(algorithm, report.experiment.widths).items():
                if runs := report.results.get((case.name, name)):
                    row: Row = {"case": case.title, "algorithm": ALGORITHMS[name].label, "sets": sets}
                    row |= {"runs": len(runs), **(_errors(runs) if case.horizon else _steps(case, runs))}
                    rows.append(row | _measured(runs, report.experiment))
    return rows


def _at_widths(algorithm: str, widths: Sequence[Width]) -> dict[str, str]:
    """Return the names of an algorithm at the widths, with the widths as text; "-" if it has no sets."""
    names = {at(algorithm, width): width.short for width in widths}
    return names if "scale" in ALGORITHMS[algorithm].options else dict.fromkeys(names, "-")


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
    return row | (_estimate("trap visits", [run.watched for run in runs]) if case.watch else {})


def _errors(runs: Sequence[Run]) -> Row:
    error = stats.mean([run.curve[-1, 1] for run in runs])
    return {"steps": max(run.steps for run in runs), "error": error.value, "low": error.low, "high": error.high}


def _measured(runs: Sequence[Run], experiment: Experiment) -> Row:
    row: Row = {}
    for title, measure in experiment.measures.items():
        row |= _estimate(title, [measure(run) for run in runs])
    return row


def _estimate(title: str, values: Sequence[float]) -> Row:
    mean = stats.mean(values)
    return {title: mean.value, f"{title}, low": mean.low, f"{title}, high": mean.high}


def write(out: Path, reports: list[Report], command: str) -> None:
    """Write index.md and index.html to `out`, where the figures are NAME/figure.png and so on."""
    text = markdown(reports, command)
    store.write(out / "index.md", text.encode())
    store.write(out / "index.html", as_html(text).encode())


def markdown(reports: Sequence[Report], command: str) -> str:
    """Return the page as Markdown; `command` is what made it."""
    lines = [f"# {TITLE}", "", f"Made by `{command}` with gosprl {gosprl.__version__}."]
    if any(report.quick for report in reports):
        lines += ["", "**A quick look**: few cases and short horizons. Verdicts are about these only."]
    claimed = sum(len(report.claims) for report in reports)
    table = _folded(f"All {claimed} claims, with their verdicts", _verdict_table(reports))
    lines += ["", "## Verdicts", "", *_counts(reports), "", *table, "", "## How to read this", *_settings(reports)]
    for report in reports:
        lines += ["", *_section(report)]
    return "\n".join(lines) + "\n"


def _settings(reports: Sequence[Report]) -> list[str]:
    settings = ", ".join(f"{key} = {value}" for key, value in PAPER.items() if key != "scale")
    runs = ", ".join(str(number) for number in sorted({report.runs for report in reports}))
    return [
        "",
        "A pair is a state and an action; its need b(s,a) is the number of samples needed of it. An algorithm runs "
        "until every need is met, and is judged by the number of its steps. Every mean is of "
        f"{runs} runs, unless its table says otherwise; those of the paper are of {claims.PAPER_RUNS}.",
        "",
        f"**Two widths of the confidence sets.** *{STATED.title}*: with L = log(2 S A N / δ), the radius is 0.1 · "
        "(2 √(p̂ (1 - p̂) L / N) + 6 L / N). "
        f"*{FITTED.title}*: the radius is 0.1 · 2 √(p̂ (1 - p̂) L / N) + 0.01 · 6 L / N, as if L were multiplied by "
        "0.01. This is our reading, chosen because it comes near the numbers of the paper's Table 2, which the first "
        "does not. Why it fits is not known.",
        "",
        f"GOSPRL and its rivals have the paper's other settings ({settings}); our default, `guarded`, has its own, "
        f"which keep its guarantee. A run is stopped at {CENSORED_AT} times the mean steps of the first {PILOT} runs "
        "of the reference algorithm at its width (without sets: at the first), and counts with the steps it made. This "
        "favours the stopped algorithm, and ≥ marks numbers that are only lower bounds. Intervals are 95 % by the "
        f"percentile bootstrap, {stats.RESAMPLES} resamples. A claim is undecided where such an interval contains its "
        "threshold. The fluid limit is a lower bound on the expected steps of any algorithm. Thresholds were fixed "
        "before the runs were made, unless a claim says otherwise.",
        "",
        FILES,
    ]


def _counts(reports: Sequence[Report]) -> list[str]:
    """Return a line for each width: how many claims have which verdict."""
    lines = []
    for width in _widths(reports):
        found = [each for report in reports if width in report.experiment.widths for each in report.verdicts(width)]
        ours, others = (
            [each for each in found if each.claim.startswith(prefix)] for prefix in (claims.BEYOND, claims.SOURCE)
        )
        theirs = [each for each in found if each not in ours and each not in others]
        lines.append(
            f"- **{width.title}**: {len(theirs)} claims of the paper: {_count(theirs)}. With other constants of the "
            f"rivals, {len(others)} of them again: {_count(others)}. Beyond the paper, {len(ours)} of ours: "
            f"{_count(ours)}."
        )
    return lines


def _widths(reports: Sequence[Report]) -> list[Width]:
    return list({width.name: width for report in reports for width in report.experiment.widths}.values())


def _count(verdicts: Sequence[Verdict]) -> str:
    count = Counter(each.verdict for each in verdicts)
    return ", ".join(f"{count[word]} {word}" for word in claims.VERDICTS)


def _verdict_table(reports: Sequence[Report]) -> list[str]:
    widths, rows = _widths(reports), []
    for report in reports:
        experiment = report.experiment
        rows.append([f"[**{experiment.name}**: {experiment.title}](#{experiment.name})", *("" for _ in widths)])
        for each in report.claims:
            words = {width.name: one.verdict for width, one in zip(experiment.widths, each, strict=True)}
            rows.append([each[0].claim, *(words.get(width.name, "") for width in widths)])
    return _table(("claim", *(width.short for width in widths)), rows)


def _section(report: Report) -> list[str]:
    experiment = report.experiment
    lines = [
        *(f'<a id="{experiment.name}"></a>', "", f"## {experiment.title}", ""),
        *(f"{experiment.paper}; here `{experiment.name}`. {experiment.text}", "", *_pictures(experiment), ""),
        *(*_summary_table(report), "", f"The same with all digits: [summary.csv]({experiment.name}/summary.csv).", ""),
        *_folded(f"The {len(report.claims)} claims, with numbers", _claims(report)),
    ]
    if report.failed:
        lines += ["", "### Failed runs", "", *(f"- `{each}`" for each in report.failed)]
    return lines


def _pictures(experiment: Experiment) -> list[str]:
    """Return the figures, in one paragraph of HTML: side by side where there is room, otherwise one below the other."""
    lines = ['<p class="figures">']
    for width in experiment.widths:
        file, text = f"{experiment.name}/figure{width.suffix}", html.escape(f"{experiment.title}; {width.title}")
        lines.append(
            f'<a href="{file}.png"><img src="{file}.png" width="{PICTURE_WIDTH}" alt="{text}" title="{text}"></a>'
        )
    return [*lines, "</p>"]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]


def _claims(report: Report) -> list[str]:
    return [line for each in report.claims for line in _claim(each, report.experiment.widths)]


def _claim(each: Sequence[Verdict], widths: Sequence[Width]) -> list[str]:
    """Return a claim; what differs between the widths is given for each."""
    first = each[0]
    return [
        f"- {first.claim}",
        f"    - paper: {first.paper}",
        *_by_width("", [f"**{one.verdict}**" for one in each], widths),
        *_by_width("ours: ", [one.ours for one in each], widths),
        *([f"    - confirmed if: {first.threshold}"] if first.threshold else []),
        *_by_width("", [one.reason for one in each], widths),
    ]


def _by_width(prefix: str, texts: Sequence[str], widths: Sequence[Width]) -> list[str]:
    if len(set(texts)) == 1:
        return [f"    - {prefix}{texts[0]}"] if texts[0] else []
    pairs = zip(widths, texts, strict=True)
    return [f"    - ({width.short}) {prefix}{text}" for width, text in pairs if text]


def _summary_table(report: Report) -> list[str]:
    rows = summary(report)
    if not rows:
        return ["No runs."]
    extra = [*(["trap visits"] if "trap visits" in rows[0] else []), *report.experiment.measures]
    head, cells = (_ERRORS, _error_cells) if "error" in rows[0] else (STEPS, _step_cells)
    table = _table(
        ["case", "algorithm", "sets", "runs", *head, *(f"{title}, mean (95 %)" for title in extra)],
        ([*_named(row), *cells(row), *(_interval(row, title) for title in extra)] for row in rows),
    )
    return table if len(rows) < FOLDED else _folded(f"All {len(rows)} rows of the table", table)


_ERRORS = ("steps", "error at the end (95 %)")


def _error_cells(row: Row) -> list[str]:
    return [f"{row['steps']:,}", _with_interval(row, "error")]


def _step_cells(row: Row) -> list[str]:
    return [
        _at_least(row) + _with_interval(row, "mean"),
        _at_least(row, 0.9) + stats.number(float(row["q90"])),
        stats.number(float(row["limit"])),
        _at_least(row) + stats.number(float(row["ratio"])),
        str(row["censored"]),
    ]


def _at_least(row: Row, share: float = 1.0) -> str:
    """Return a mark if fewer than this share of the runs met their need; the stopped runs are the longest ones."""
    return "" if float(row["met"]) >= share * float(row["runs"]) else "≥ "


def _named(row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in ("case", "algorithm", "sets", "runs"))


def _with_interval(row: Row, key: str) -> str:
    return str(stats.Estimate(float(row[key]), float(row["low"]), float(row["high"])))


def _interval(row: Row, title: str) -> str:
    return str(stats.Estimate(*(float(row[key]) for key in (title, f"{title}, low", f"{title}, high"))))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = (" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows)
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {line} |" for line in lines)]


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
code { background: #f3f3f3; padding: 0 .2em; overflow-wrap: anywhere; } summary { cursor: pointer; margin: .5rem 0; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } .figures a { flex: 1 1 26rem; min-width: min(26rem, 100%); }
img { width: 100%; height: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid #ddd; min-width: 4rem; }
th { border-bottom: 2px solid #888; } li ul { color: #555; font-size: 13px; }
.yes { color: #00694c; font-weight: 600; } .no { color: #a63c00; font-weight: 600; }
.maybe { color: #7a5c00; font-weight: 600; } .open { color: #666; }
"""


def as_html(text: str) -> str:
    """Return the page as a self-contained HTML file."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    body = body.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    for word, mark in zip(claims.VERDICTS, ("yes", "no", "maybe", "open"), strict=True):
        body = body.replace(f"<td>{word}</td>", f'<td class="{mark}">{word}</td>')
        body = body.replace(f"<strong>{word}</strong>", f'<strong class="{mark}">{word}</strong>')
    head = '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    head += f"<title>{html.escape(TITLE)}</title>\n<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'
