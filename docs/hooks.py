"""What MkDocs does besides: pages made from results and commands, links into the repository, formulas as MathML.

- `evidence/NAME.md` and `benchmarks/NAME.md` are the committed results, each with its command, date and machine;
  `reference/commands.md` comes from the command line itself, `reference/changelog.md` is CHANGELOG.md.
- Pages are written to be read in the repository, too: links to results lead to the pages made of them here; links to
  other files outside of docs/ become their path. A target that does not exist is an error.
- Formulas between dollars become MathML, which browsers show without a script.
- What a page folds (`<details>`) is Markdown, as it is in the repository.
- Pages of the theme get what its templates leave out: a name of the search, and no empty header cells; its search is
  mended.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
KINDS = {"evidence": "Evidence", "benchmarks": "Benchmarks"}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
TABLE = re.compile(r"<!-- table (\S+) (\d+) -->")
NAMED = "e=e+s+o.id"  # of a part of lunr's index
MACHINE = re.compile(r"^.*?([^,;\n]+), Linux, Python", re.MULTILINE)  # in the last line of a result that has times
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


# Pages made here


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation."""
    results = next(section["Results"] for section in config.nav or [] if "Results" in section)
    for kind, title in KINDS.items():
        pages = [f"{kind}/{path.stem}.md" for path in sorted((ROOT / kind / "results").glob("*.md"))]
        results.append({title: [f"{kind}/index.md", *pages]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    made = {"reference/commands.md": commands(), "reference/changelog.md": (ROOT / "CHANGELOG.md").read_text()}
    for kind, title in KINDS.items():
        paths = sorted((ROOT / kind / "results").glob("*.md"))
        made |= {f"{kind}/{path.stem}.md": result(path) for path in paths}
        made[f"{kind}/index.md"] = overview(kind, title, paths)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def result(path: Path) -> str:
    """Return the page of a committed result: its text, below the title what made it, when and where."""
    title, _, rest = path.read_text().partition("\n")
    return f"{title}\n\n{origin(path)}\n{rest}".replace("](../../docs/", "](../")


def origin(path: Path) -> str:
    """Return a box that says what made a result, when, and on which machine."""
    date = changed(path)
    machine = machine_of(path)
    where = (
        f"Machine: {machine}."
        if machine
        else "Steps and shares follow from the seeds, whatever the machine; times do not."
    )
    kind = path.parents[1].name
    text = f"`{command(path)}`, committed {date}. {where} File: `{kind}/results/{path.name}`."
    return f'!!! note "How this was made"\n    {text}\n'


def command(path: Path) -> str:
    """Return the command that makes a result."""
    stated = re.search(r"`(python (?:-m evidence\.|benchmarks/)[^`]*)`", path.read_text())
    if stated:
        return stated[1]
    name, large, _ = path.stem.partition("_large")
    return f"python benchmarks/{name}.py" + (" --large" if large else "")


def machine_of(path: Path) -> str | None:
    """Return the machine that a result names; None if it names none."""
    found = MACHINE.search(path.read_text())
    return found and found[1].strip()


def changed(path: Path) -> str:
    """Return the date of the commit that last changed a file; without git, that of the file is all there is."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return "at an unknown date (no git history here)"
    asked = [git, "-C", str(ROOT), "log", "-1", "--format=%cs", "--", str(path)]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() or "not yet"


def overview(kind: str, title: str, paths: list[Path]) -> str:
    """Return a table of all results of a kind."""
    rows = []
    for path in paths:
        heading = path.read_text().partition("\n")[0].removeprefix("# ")
        rows.append(f"| [{heading}]({path.stem}.md) | `{command(path)}` | {changed(path)} |")
    head = f"# {title}\n\nEvery page is a file in `{kind}/results`, written by the command beside it and committed.\n\n"
    return head + "\n".join(["| result | command | committed |", "|---|---|---|", *rows]) + "\n"


# Commands


def commands() -> str:
    """Return the reference of the command line, from the commands themselves."""
    import typer

    from gosprl.cli.app import FIRST, app

    group = typer.main.get_command(app)
    parts = [
        "# Commands",
        "Made from the commands themselves; `gosprl VERB --help` prints the same.",
        f"```text\n{FIRST}\n```",
    ]
    parts += [verb(name, each) for name, each in group.commands.items()]
    return "\n\n".join(parts) + "\n"


def verb(name: str, command: Any) -> str:
    """Return the section of one verb: what it does, examples, arguments and options with their defaults."""
    text, *examples = re.split(r"^Example: ", command.help, flags=re.MULTILINE)
    shown = [re.match(r"`(.*?)`", example, re.DOTALL) for example in examples]
    block = "\n".join(match[1] for match in shown if match)
    rows = [option(each) for each in command.params if not getattr(each, "hidden", False)]
    table = "\n".join(["| | meaning | default |", "|---|---|---|", *rows])
    return f"## gosprl {name}\n\n{text.strip()}\n\n```bash\n{block}\n```\n\n{table}"


def option(parameter: Any) -> str:
    """Return a row of the table of options."""
    is_option = parameter.param_type_name == "option"
    name = (
        ", ".join(f"`{each}`" for each in parameter.opts)
        if is_option
        else f"`{(parameter.metavar or parameter.name).strip(chr(91) + chr(93)).upper()}`"
    )
    default = parameter.default
    shown = (
        "required"
        if parameter.required
        else ""
        if default is None or default is False or default == () or callable(default)  # 0 is a default, too
        else f"`{default}`"
    )
    if isinstance(getattr(parameter, "show_default", None), str):
        shown = parameter.show_default
    return f"| {name} | {(parameter.help or '').replace('|', chr(92) + '|')} | {shown} |"


# Links and formulas


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links out of docs/ into links to the pages made here, or into the path of a file of the repository."""
    folded = markdown.replace("<details>", '<details markdown="1">')
    return LINK.sub(lambda match: _link(match, page), TABLE.sub(_table, folded))


def _table(match: re.Match[str]) -> str:
    """Return the n-th table of a committed result, with the command, the date and, of times, the machine."""
    path = ROOT / match[1]
    tables = re.findall(r"(?:^\|.*\n)+", path.read_text(), re.MULTILINE) if path.exists() else []
    if not 1 <= int(match[2]) <= len(tables):
        raise PluginError(f"{match[0]}: expected a committed result with so many tables; {match[1]} has {len(tables)}")
    machine = machine_of(path)
    origin = f"`{command(path)}`, committed {changed(path)}{f', {machine}' if machine else ''}"
    return f"{tables[int(match[2]) - 1]}\n<small>{origin}</small>\n"


def _link(match: re.Match[str], page: Page) -> str:
    text, target, anchor = match[1], match[2], match[3] or ""
    if page.file.abs_src_path is None:  # a page made here
        return match[0] if page.file.src_uri != "reference/changelog.md" else text
    path = (Path(page.file.abs_src_path).parent / target).resolve()
    if path.is_relative_to(ROOT / "docs"):
        return match[0]
    if not path.exists():
        if re.fullmatch(r"(\.\./)*(evidence|benchmarks|reference)/[\w]+\.md", target):  # a page made here
            return match[0]
        raise PluginError(f"{page.file.src_uri} links to {target}, which does not exist")
    inside = path.relative_to(ROOT)
    if inside.parts[0] in KINDS and inside.parts[1:2] == ("results",) and inside.suffix == ".md":
        up = "../" * page.file.src_uri.count("/")
        return f"[{text}]({up}{inside.parts[0]}/{inside.name}{anchor})"
    return f"{text} (`{inside}`)" if text.strip("`") != str(inside) else f"`{inside}`"


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn formulas into MathML, and header cells without a text into cells, which readers of screens expect."""
    return FORMULA.sub(_formula, re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html))


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search, which the theme leaves without a name."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_post_build(config: MkDocsConfig) -> None:
    """Mend the index of the search, which takes two parts of it for one where their names run together.

    lunr names a part by letters and numbers without anything between, so that words with digits, of which results have
    many, can be mistaken for others; searching for some letters then fails. A comma tells them apart.
    """
    for path in Path(config.site_dir).glob("assets/javascripts/workers/search.*.min.js"):
        text = path.read_text("utf-8")
        if NAMED not in text:
            raise PluginError(f"{path.name}: expected lunr's {NAMED}; see whether it is still needed to mend it")
        path.write_text(text.replace(NAMED, f'{NAMED}+","'), "utf-8")


def _formula(match: re.Match[str]) -> str:
    latex = match[2].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()
    return convert(latex, display="block" if match[1] == "div" else "inline")
