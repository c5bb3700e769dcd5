"""Pages as a browser reads them: elements, attributes, text, tables; by Python's own parser."""

import json
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input"}


class Page(HTMLParser):
    """A parsed page.

    Attributes
    ----------
    elements
        (tag, attributes) in order.
    text
        What a reader without scripts sees, pictures included.
    scripts
        (attributes, content).
    rows
        The cells of all rows of tables.
    """

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.rows, self.open = [], [], [], []
        self._parts = []
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self._parts).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attributes), ""))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open[-1] == tag, f"<{self.open[-1]}> ends with </{tag}>"
        self.open.pop()

    def handle_data(self, data):
        if "script" in self.open:
            attributes, content = self.scripts[-1]
            self.scripts[-1] = attributes, content + data
        elif "style" not in self.open:
            self._parts.append(data)
            if "td" in self.open or "th" in self.open:
                self.rows[-1][-1] += data

    def attributes(self, tag):
        """The attributes of all elements of a tag."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def headings(self):
        """Anchors of the parts."""
        return [attributes["id"] for attributes in self.attributes("section")]

    @property
    def charts(self):
        """The specifications of the live charts."""
        return json.loads(next(content for attributes, content in self.scripts if attributes.get("id") == "specs"))

    def values(self, chart, layer=0):
        """The data of a layer of a chart."""
        return self.charts[chart]["spec"]["layer"][layer]["data"]["values"]


def page_of(source, **options):
    """The page of a run, a result or an answer, parsed; every element must be closed."""
    from gosprl.report.writing import page_of

    page = Page(page_of(source, **options).html)
    assert page.open == []
    return page
