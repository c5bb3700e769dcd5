"""What the parts of a page are made of, and how much they list."""

from collections.abc import Callable
from dataclasses import dataclass

from gosprl.report.charts import Chart
from gosprl.report.findings import Findings
from gosprl.report.tables import Html

LISTED = 200  # rows of a table
FEW = 20  # rows of one that is there beside a chart

Figure = Callable[[Chart, str], Html]  # (chart, caption) -> HTML


@dataclass(frozen=True)
class Section:
    """A part of a page: its heading, and HTML."""

    title: str
    content: str

    @property
    def anchor(self) -> str:
        """Where links lead."""
        return self.title.lower().replace(" ", "-")


def everything_in(found: Findings) -> str:
    """Return where everything is of which a table lists a part."""
    return f"; gosprl export {found.directory} FILE.csv has all" if found.directory else "; result.model has all"
