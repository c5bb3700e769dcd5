"""The tutorial notebook runs from top to bottom in a kernel of its own, and is committed without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FILE = Path(__file__).parents[1] / "examples" / "tutorial.ipynb"


def execute(notebook):
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return notebook


def test_the_notebook_runs():
    notebook = nbformat.read(FILE, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    execute(notebook)
    kinds = {kind for cell in cells for each in cell.outputs for kind in each.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    assert cells[-1].outputs[-1]["data"]["text/plain"] == "'confirmed'"


def test_a_cell_that_fails_is_found_out():
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
    with pytest.raises(CellExecutionError):
        execute(broken)
