"""Notebooks show tables of results, models, plans and answers, in which nothing from data is markup; and pictures."""

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from pages import Page

import gosprl
from gosprl import applications
from gosprl.planning.ssp import plan

BAD = "<script>alert(1)</script>"


def shown(value):
    page = Page(value._repr_html_())
    assert page.open == []
    assert page.scripts == []
    return page


def test_a_result_shows_what_it_prints():
    result = gosprl.collect("riverswim6", 3, seed=0)
    rows = dict(shown(result).rows)
    assert rows == dict(result.lines())
    assert rows["steps"] == f"{result.steps:,}"
    assert all(name in repr(result) for name in rows)


def test_an_answer_shows_what_it_prints():
    answer = applications.estimate_rewards(gosprl.envs.make("riverswim6"), epsilon=0.5, seed=0)
    assert [tuple(row) for row in shown(answer).rows] == [*answer.lines(), *answer.ending()]
    assert answer.plot("visits").axes


def test_a_model_shows_its_pairs_by_samples_and_escapes_observations():
    class Two:
        def reset(self, seed=None, options=None):
            self.at = 0
            return BAD, {}

        def step(self, action):
            self.at = 1 - self.at if action else self.at
            return (BAD, "x" * 10**6)[self.at], 2.0, False, False, {}

    result = gosprl.collect(Two(), 3, seed=0, actions=[0, BAD])
    page = shown(result.model)
    cells = page.rows[1:]
    assert len(cells) == 4
    assert {row[0][:10] for row in cells} == {BAD[:10], "x" * 10}
    assert sorted(int(row[2]) for row in cells) == sorted(result.counts.ravel().tolist())
    assert {row[3] for row in cells} == {"2"}
    assert len(page.text) < 5000


def test_tables_and_plans():
    river = gosprl.envs.make("riverswim6")
    rows = dict(shown(river).rows)
    assert (rows["states"], rows["actions"], rows["start"]) == ("6", "2", str(river.start))
    made = plan(river, [5])
    page = shown(made)
    farthest = [row for row in page.rows if len(row) == 3][1]
    assert farthest[0] == str(int(np.argmax(made.values)))
    assert float(farthest[2]) == pytest.approx(made.values.max(), rel=1e-3)


def test_a_notebook_shows_tables_and_pictures():
    code = [
        "import gosprl\nresult = gosprl.collect('riverswim6', 3, seed=0)\nresult",
        "result.plot()",
        "result.plot('visits')",
        "gosprl.report.plot([result, result], ax=None)",
        "result.model",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    kinds = [[set(output["data"]) for output in cell["outputs"]] for cell in notebook.cells]
    assert [len(outputs) for outputs in kinds] == [1] * len(code)
    for i, kind in enumerate(["text/html", "image/png", "image/png", "image/png", "text/html"]):
        assert kind in kinds[i][0]
