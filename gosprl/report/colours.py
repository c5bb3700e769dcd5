"""The colours of charts, for light pages and dark ones.

Charts are drawn once, in the light colours. In a page, style rules replace each of them by its dark one, in static
pictures as in live ones, so that colours follow the reader's setting without a script.
"""

INK, FAINT, GRID, WALL, PAPER = "#24292f", "#57606a", "#d8dee4", "#8c959f", "#fefefe"
LINE, LIMIT, MISSING, SOME, START, ENDING, POINT, EDGE = (
    "#0969da",
    "#9a6700",
    "#cf222e",
    "#e8873a",
    "#1a7f37",
    "#8250df",
    "#54aeff",
    "#afb8c1",
)
HEAT = ("#eaeef2", "#ddf4ff", "#b6e3ff", "#80ccff", "#54aefe", "#218bff", "#0550ae")  # the first: none

DARK = {
    INK: "#e6edf3",
    FAINT: "#9da7b3",
    GRID: "#30363d",
    WALL: "#484f58",
    PAPER: "#0d1117",
    LINE: "#58a6ff",
    LIMIT: "#d29922",
    MISSING: "#ff7b72",
    SOME: "#e0a36c",
    START: "#3fb950",
    ENDING: "#bc8cff",
    POINT: "#388bfd",
    EDGE: "#57606b",
    **dict(zip(HEAT, ("#21262d", "#0c2d4f", "#10427a", "#1a5cab", "#2f7ddb", "#65b1ff", "#cae8ff"), strict=True)),
}


def dark_rules() -> str:
    """Return the style rules that replace each light colour by its dark one."""
    rules = [
        f'.chart [{kind}="{light}"]{{{kind}:{dark}}}' for light, dark in DARK.items() for kind in ("fill", "stroke")
    ]
    return "\n".join(rules)
