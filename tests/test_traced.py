"""Every number that the README and the site state as measured is in the committed result that is named beside it."""

import pytest
from traced import ROOT, pages, untraced


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_numbers_come_from_committed_results(page):
    assert untraced(page.read_text()) == []


HEAD = "| domain | samples a pair | guarded |\n|---|---|---|"
LIMIT = "evidence/results/near_limit.md"
ROW = "| riverswim6 | 10 | 1.057 ± 0.044 |"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It takes 1.5 s.", "no source"),
        ("It takes 12,345 steps.", "no source"),
        (f"<!-- from {LIMIT} -->\nIt takes 9.876 times as long.", "9.876 is not in"),
        ("<!-- from evidence/results/gone.md -->\nIt takes 1.5 s.", "is no file"),
        (
            f"<!-- rows of {LIMIT} -->\n{HEAD}\n{ROW.replace('57', '58')}",
            "no such row",
        ),
        (f"<!-- rows of {LIMIT} -->\n{HEAD.replace(' a pair', '')}\n{ROW}", "no such row"),
        (f"<!-- rows of {LIMIT} -->\n{HEAD}\n{ROW}", None),
        (f"<!-- from {LIMIT} -->\nIt takes 1.06 times the limit.", None),
        ("<!-- set: a limit -->\nAt most 100,000 steps.", None),
        ("Run `sleep 1.5`, in Python 3.11.", None),
    ],
)
def test_numbers_without_a_result_are_found_out(text, wrong):
    found = untraced(f"Words.\n\n{text}\n\nMore words.")
    assert found == [] if wrong is None else wrong in found[0]
