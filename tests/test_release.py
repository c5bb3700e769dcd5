"""What is published is complete: metadata, changelog, citation; and `tools/release.py` refuses what is not."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from trove_classifiers import classifiers

import gosprl

ROOT = Path(__file__).parents[1]
problems = runpy.run_path(str(ROOT / "tools/release.py"))["problems"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CITED, DATED = "version: 1.2.0\n", "## 1.2.0 (2030-01-02)\n\n- A change.\n"


def test_version_citation_and_changelog_agree():
    assert problems(gosprl.__version__, (ROOT / "CITATION.cff").read_text(), (ROOT / "CHANGELOG.md").read_text()) == []


@pytest.mark.parametrize(
    ("version", "citation", "changelog", "final", "wrong"),
    [
        ("1.2.0", CITED, DATED, True, None),
        ("1.2.0", "version: 1.1.0\n", DATED, False, "CITATION.cff has version 1.1.0"),
        ("1.2.0", CITED, "## 1.1.0 (2029-01-02)\n\n- A change.\n", False, "no section"),
        ("1.2.0", CITED, "## 1.2.0 (2030-01-02)\n\n## 1.1.0 (2029-01-02)\n\n- A change.\n", False, "says nothing"),
        ("1.2.0", CITED, DATED.replace("2030-01-02", "unreleased"), False, "no date"),
        ("1.2.0.dev0", "version: 1.2.0.dev0\n", DATED.replace("2030-01-02", "unreleased"), False, None),
        ("1.2.0.dev0", "version: 1.2.0.dev0\n", DATED, True, "a version of development"),
    ],
)
def test_what_is_not_complete_is_refused(version, citation, changelog, final, wrong):
    found = problems(version, citation, changelog, final=final)
    assert found == [] if wrong is None else wrong in found[0]


def test_classifiers_exist_and_say_what_the_project_says():
    named = PROJECT["project"]["classifiers"]
    assert set(named) <= classifiers
    oldest = re.search(r">=([\d.]+)", PROJECT["project"]["requires-python"])[1]
    assert f"Programming Language :: Python :: {oldest}" in named


def test_the_source_distribution_names_files_that_exist():
    for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name).exists(), name
