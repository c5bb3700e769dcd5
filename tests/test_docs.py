"""Documentation does what it says: the README, docs/, CONTRIBUTING.md and examples/README.md.

Blocks of Python and of commands run page by page, from top to bottom, in a directory of their own. A comment behind an
expression says what it gives: `result.steps  # 3351`. Where that begins with a number, True or False, a text in quotes,
or a tuple, it is compared. A block of text right behind a block of commands is what they print. Commands that are long
or wait for somebody are listed in tests/data/long_commands.json with their last run.
"""

import inspect
import re
import runpy
import subprocess
import sys
import warnings
from types import SimpleNamespace

import markdown
import pytest
import stated
from documented import COMMANDS, LONG, PAGES, ROOT, all_commands, blocks, commands, furnish, invoke, problem, run
from mkdocs.exceptions import PluginError

import gosprl
from evidence import picture

RUN = [page for page in PAGES if any(language in ("python", "bash", "") for language, _ in blocks(page))]
KEPT = {"exchange.md", "exchange_data.md"}  # they begin with a run that is there already


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", RUN, ids=name)
def test_blocks_run_and_give_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    furnish(tmp_path)
    if page.name in KEPT:
        assert invoke("gosprl collect FrozenLake-v1 --need 20 --seed 0 --out runs/lake").exit_code == 0
    scope, printed = {"__name__": "__main__"}, None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for language, text in blocks(page):
            if language == "python":
                run(text, scope)
            elif language == "text" and printed is not None:
                assert text.split() == printed.split(), f"{name(page)} shows other output than is printed:\n{printed}"
            printed = outputs(text) if language in ("", "bash") else None


def outputs(text):
    printed = ""
    for command in commands(text):
        if command not in LONG:
            done = invoke(command)
            assert done.exit_code == 0, f"{command}: {done.output}"
            printed += done.stdout
    return printed


def test_every_command_is_run_or_listed_as_long():
    found = all_commands()
    assert [problem(command) for command in found if problem(command)] == []
    assert [each for each in found if not each.startswith("gosprl") and each not in LONG] == []
    assert [each for each in LONG if each not in found] == []  # no page says so any more
    for command, last in LONG.items():
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", last["run"]), command
        assert (ROOT / last["shows"]).exists(), command


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("gosprl collekt toy3", "collekt is no verb"),
        ("gosprl collect toy3 --ned 3", "--ned is not an option of collect"),
        ("gosprl collect toy3 --need=3", None),
    ],
)
def test_commands_that_do_not_exist_are_found_out(command, wrong):
    assert problem(command) == wrong


@pytest.mark.parametrize("page", [page for page in PAGES if stated.STATED.search(page.read_text())], ids=name)
def test_defaults_are_those_of_the_code(page):
    assert stated.wrong_defaults(page.read_text()) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<!-- default gosprl.probe.level = 0.02 -->\nAt level 0.02.", "the page says 0.02, the code 0.01"),
        ("<!-- default gosprl.probe.level = 0.01 -->\nAt level 0.015.", "the words do not say 0.01"),
        ("<!-- default gosprl.probe.levels = 0.01 -->\nAt level 0.01.", "is no argument"),
        ("<!-- default gosprl.probe.max_steps = 100000 -->\nAfter 100,000 steps.", None),
    ],
)
def test_defaults_that_have_changed_are_found_out(text, wrong):
    found = stated.wrong_defaults(text)
    assert found == [] if wrong is None else wrong in found[0]


def test_every_verb_and_option_of_the_reference_has_the_default_of_the_code():
    text = hooks().commands()
    for verb, command in COMMANDS.items():
        section = text.partition(f"\n## gosprl {verb}\n")[2].partition("\n## ")[0]
        for each in command.params:
            if each.param_type_name == "option" and not each.hidden:
                assert f"`{each.opts[0]}`" in section, (verb, each.opts)
                if isinstance(each.default, (int, float, str)) and not isinstance(each.default, bool):
                    assert f"`{each.default}`" in section or isinstance(each.show_default, str), (verb, each.opts)


def test_the_reference_has_every_public_name():
    public = {
        name for name in gosprl.__all__ if inspect.isclass(each := getattr(gosprl, name)) or inspect.isroutine(each)
    }
    assert missing(public) == set()
    assert missing({"collect", "collekt"}) == {"collekt"}


def missing(names):
    """Names without an entry in the reference."""
    return names - {entry.rpartition(".")[2] for entry in entries()}


def entries():
    """What the reference describes."""
    text = "".join((ROOT / f"docs/reference/{page}.md").read_text() for page in ("api", "extension"))
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


def test_what_the_reference_names_is_there_after_import_gosprl():
    """In a process of its own: others may have imported parts of the package already."""
    code = f"import gosprl\nfor name in {[*entries(), 'gosprl.nowhere']}: print(name, flush=True); eval(name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split()[-1] == "gosprl.nowhere", done.stderr


def test_links_of_the_site_to_files_that_do_not_exist_are_errors():
    page = SimpleNamespace(file=SimpleNamespace(abs_src_path=str(ROOT / "docs/faq.md"), src_uri="faq.md"))
    made = hooks()
    assert "`examples/README.md`" in made.on_page_markdown(
        "[it](../examples/README.md)", page=page, config=None, files=None
    )
    with pytest.raises(PluginError, match="does not exist"):
        made.on_page_markdown("[it](../examples/gone.md)", page=page, config=None, files=None)
    with pytest.raises(PluginError, match="so many tables"):
        made.on_page_markdown("<!-- table evidence/results/price.md 99 -->", page=page, config=None, files=None)


def test_what_a_page_folds_is_markdown_on_the_site():
    page = SimpleNamespace(file=SimpleNamespace(abs_src_path=str(ROOT / "docs/faq.md"), src_uri="faq.md"))
    text = hooks().on_page_markdown(
        "<details>\n<summary>x</summary>\n\n| a |\n|---|\n\n</details>", page=page, config=None, files=None
    )
    assert markdown.markdown(text, extensions=["tables", "md_in_html"]).count("<table>") == 1


def hooks():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs/hooks.py")))


def test_the_demonstration_shows_what_the_command_prints():
    shown = picture.text_of(picture.PICTURE)
    assert shown == picture.text_of(picture.demonstration())
    other = picture.demonstration().replace("3,351", "3,350")
    assert picture.text_of(other) != shown


def test_links_between_pages_lead_somewhere():
    made = re.compile(
        r"(\.\./)*(evidence|benchmarks|reference)/\w+\.md"
    )  # by docs/hooks.py; a strict build checks them
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)[)#]", page.read_text()):
            assert (page.parent / target).exists() or made.fullmatch(target), f"{name(page)} links to {target}"


def test_wrong_comments_are_found_out():
    for code in ("1 + 1  # 3", '("a", 2)  # "b", 2', "(True, 1)  # (True, 2)"):
        with pytest.raises(AssertionError):
            run(code, {})
    run("(True, 2000)  # True, 2,000: and words", {})
