"""A run at a glance: one HTML file that needs nothing else, pictures for notebooks, and short tables there.

findings   what there is to show of a result or of a run on disk, as plain data
places     coordinates of states: of a map, given by the user, or observations of two numbers
graph      the learnt system as points and lines; many states are drawn in groups
charts     Vega-Lite specifications; `drawing` makes pictures of them
tables     HTML of texts and numbers, everything escaped
sections   the parts of a page; `answers` those of applications; `page` puts them together
plots      the same pictures with matplotlib; `notebook` the short tables of `_repr_html_`
"""

from gosprl.report.plots import plot
from gosprl.report.writing import report

__all__ = ["plot", "report"]
