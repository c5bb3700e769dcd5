"""What is printed passes here: control characters that come from outside reach no terminal."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gosprl.printing import lines_printable


class Terminal(Console):
    """A console that escapes control characters in texts; styles and its own control codes are no texts."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a renderable, as `rich.console.Console` does."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=lines_printable(segment.text))
