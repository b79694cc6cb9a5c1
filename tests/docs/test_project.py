"""The files of the project agree: package metadata, extras, versions, links and the address of the repository."""

import ast
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from trove_classifiers import classifiers as known_classifiers

import oprag
from oprag.llama_index import OrderPreservingPostprocessor
from tests.reader import ROOT, python_blocks

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_USERS = [name for name in EXTRAS if name not in ("dev", "docs")]
BASE = PROJECT["urls"]["Repository"]
PAGES = ["README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"]
FOLDERS = ["src", "tests", "docs", "examples", "benchmarks", "packaging", ".github"]
FILES = [
    *(ROOT / name for name in (*PAGES, "CITATION.cff", "Makefile", "mkdocs.yml", "pyproject.toml", ".ci/floors")),
    *(
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".md", ".py", ".toml", ".yml", ".txt", ".ipynb")
    ),
]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements(extra: str) -> tuple[set[str], set[str]]:
    """The extras that an extra includes, and its own packages."""
    included = {
        name for one in EXTRAS[extra] for name in re.findall(r"^oprag\[(.*)\]", one) for name in name.split(",")
    }
    own = {re.split(r"[<>=~!\[]", one)[0] for one in EXTRAS[extra]} - {"oprag"}
    return included, own


# Extras


def named_extras(path: Path) -> set[str]:
    """The extras in commands that install, in messages, and after the word "extra"."""
    text = path.read_text(encoding="utf-8")
    commands = re.findall(r"(?:oprag\\?|[\"'`]\.)\[([a-z][a-z0-9,\\-]*)\\?\]", text)
    named = {name for command in commands for name in command.replace("\\", "").split(",")}
    if path.suffix == ".md" or (ROOT / "src") in path.parents:
        named |= set(re.findall(r"\bextra `([a-z-]+)`", text))
    return named


def test_extras_that_are_named_exist():
    unknown = {path.relative_to(ROOT).as_posix(): named_extras(path) - EXTRAS.keys() for path in FILES}
    assert {path: names for path, names in unknown.items() if names} == {}


def test_an_error_names_an_extra_that_exists():
    places = {"MissingExtraError": 1, "import_extra": 2}  # of the extra among the arguments
    named = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = places.get(getattr(node.func, "id", ""), 0) if isinstance(node, ast.Call) else 0
            if place and isinstance(node, ast.Call):
                has_command = len(node.args) > place + 1 or any(one.arg == "command" for one in node.keywords)
                if isinstance(one := node.args[place], ast.Constant) and not has_command:
                    named.append(one.value)
    assert len(named) > 15
    assert set(named) <= set(FOR_USERS)


def test_the_page_about_installation_lists_every_extra_with_what_it_brings():
    rows = re.findall(
        r"^\| `([a-z-]+)` \|[^|]*\|([^|]*)\|([^|]*)\|", text_of("docs/reference/installation.md"), re.MULTILINE
    )
    listed = {name: tuple(set(re.findall(r"`(.*?)`", cell)) for cell in cells) for name, *cells in rows}
    assert listed == {name: requirements(name) for name in FOR_USERS}


def test_the_readme_names_every_extra():
    section = text_of("README.md").split("## Install")[1].split("\n## ")[0]
    assert set(FOR_USERS) <= set(re.findall(r"[a-z][a-z-]*[a-z]", section))


def test_the_lowest_versions_of_every_extra_are_tried():
    tried = re.findall(r"^    \[([a-z-]+)\]=", text_of(".ci/floors"), re.MULTILINE)
    assert sorted([*tried, "all", "huggingface", "ray"]) == sorted(FOR_USERS)
    for path in re.findall(r"\btests/[\w/.]+", text_of(".ci/floors")):
        assert (ROOT / path).exists()


def test_a_package_has_the_same_limits_everywhere():
    lines = text_of("tests/integration/requirements.txt").splitlines()
    given = [one for names in EXTRAS.values() for one in names if not one.startswith("oprag[")]
    given += [line for line in lines if line and not line.startswith("#")]
    limits: dict[str, set[str]] = {}
    for one in {*given, *PROJECT["dependencies"]}:
        name, first, rest = re.split(r"([<>=~!]|$)", one, maxsplit=1)
        limits.setdefault(name.lower(), set()).add(first + rest)
    assert {name: found for name, found in limits.items() if len(found) > 1} == {}
    packages = {re.split(r"[<>=~!\[]", line)[0] for line in lines if line and not line.startswith("#")}
    # What an extra brings is installed as that extra.
    assert packages.isdisjoint({package for extra in FOR_USERS for package in requirements(extra)[1]})


# Metadata


def description() -> str:
    """The long description of the package, as the build makes it."""
    pytest.importorskip("hatch_fancy_pypi_readme")
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    text = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    assert isinstance(text, str)
    return text


def test_the_description_on_pypi_has_absolute_links():
    text = description()
    targets = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"^\[[^\]]+\]: (\S+)", text, re.MULTILINE)
    targets += re.findall(r"\b(?:src|srcset|href)=[\"']([^\"']+)", text)
    assert [target for target in targets if not re.match(r"https://|#", target)] == []
    for target in targets:
        local = re.fullmatch(
            rf"{BASE}/blob/main/([^#]+).*|https://raw\.githubusercontent\.com/oprag/oprag/main/(.+)", target
        )
        assert local is None or (ROOT / (local[1] or local[2])).exists()
    assert len([target for target in targets if target.startswith(BASE)]) > 5


def test_nothing_but_links_differs_from_the_readme(tmp_path):
    (tmp_path / "description.md").write_text(description(), encoding="utf-8")
    assert python_blocks(tmp_path / "description.md") == python_blocks(ROOT / "README.md")
    without = re.sub(rf"{BASE}/blob/main/|https://raw\.githubusercontent\.com/oprag/oprag/main/", "", description())
    assert without == text_of("README.md")


def test_classifiers_are_those_of_pypi():
    assert set(PROJECT["classifiers"]) <= known_classifiers
    assert not [one for one in PROJECT["classifiers"] if one.startswith("License")]  # `license` says it


def test_every_copy_of_the_address_is_the_one_of_the_metadata():
    address = re.compile(r"(?:github\.com|raw\.githubusercontent\.com)/[\w.-]+/oprag\b")
    owner = BASE.removeprefix("https://github.com")
    for path in FILES:
        found = set(address.findall(path.read_text(encoding="utf-8"))) - {"github.com/[\\w.-]+/oprag"}
        assert {one.partition(".com")[2] for one in found} <= {owner}, path
    assert all(url.startswith(BASE) for url in PROJECT["urls"].values())
    for url in PROJECT["urls"].values():
        if "/blob/main/" in url:
            assert (ROOT / url.partition("/blob/main/")[2]).exists()


def test_the_source_archive_has_every_file_of_the_project():
    include = tomllib.loads(text_of("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in include if not (ROOT / name.removeprefix("/")).exists()] == []
    assert {f"/{name}" for name in (*PAGES, *FOLDERS, "CITATION.cff", "Makefile", ".ci")} <= set(include)


# Versions


def test_the_citation_has_the_version_of_the_package():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation["version"] == oprag.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == BASE
    assert citation["references"][0]["url"] == "https://arxiv.org/abs/2409.01666"


def test_the_changelog_begins_with_the_version_of_the_package():
    headings = re.findall(r"^## \[(.+?)\] - (Unreleased|\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0][0] == oprag.__version__


# Pages of the project


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_lead_to_files(name):
    links = re.findall(r"(?<=\]\()(?!\w+:|#)[^)\s#]+", text_of(name))
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "RELEASING.md", "README.md", "SECURITY.md"])
def test_targets_and_files_that_a_page_names_exist(name):
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^\$? *)make ([a-z]+)", text_of(name), re.MULTILINE)) <= targets
    paths = re.findall(r"`((?:src|tests|docs|examples|\.ci)/[\w/.-]+)`", text_of(name))
    # A name in capitals is for the reader to choose.
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def test_the_alias_for_llama_index_exports_the_postprocessor_and_takes_this_version():
    folder = ROOT / "packaging" / "llama-index-postprocessor-oprag"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    (requirement,) = map(Requirement, project["project"]["dependencies"])
    assert requirement.specifier.contains(oprag.__version__)
    path = folder.joinpath(*project["tool"]["llamahub"]["import_path"].split(".")) / "__init__.py"
    exported = runpy.run_path(str(path))
    assert exported["__all__"] == list(project["tool"]["llamahub"]["class_authors"])
    assert exported["OrderPreservingPostprocessor"] is OrderPreservingPostprocessor
