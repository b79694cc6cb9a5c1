"""The pages of the documentation: their examples run, what comes from code is what the code says, no link is dead."""

import pkgutil
import re
from importlib import import_module
from pydoc_data.topics import topics
from typing import Any, get_args

import pytest
import typer.main
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from typer.testing import CliRunner

import oprag
from docs.generate import DOCUMENTS, PARTS, generated
from docs.site_hooks import fetched_from_elsewhere, linked_outside, links_on_site
from oprag.cli.app import app
from oprag.langchain import check_positions
from oprag.methods.options import OnError, Overflow, RankBy
from oprag.methods.prompts import OUR_PROMPTS
from oprag.options import HEADER_FIELDS, OnMissingPosition, OnUncertain, Order, SourceRanking
from tests.compare.folders import write_data
from tests.reader import ROOT, python_blocks, readers_names, text_blocks

DOCS = ROOT / "docs"
ELSEWHERE = {
    ROOT / "README.md",
    *(
        DOCS / page
        for page in (
            "how_to/compare.md",
            "how_to/profiles.md",
            "how_to/sweep.md",
            "how_to/thresholds.md",
            "reference/data_formats.md",
            "reference/experiment_file.md",
            "reference/methods.md",
            "reference/stores.md",
            "tutorials/compare_your_chain.md",
            "tutorials/langchain.md",
            "tutorials/llama_index.md",
        )
    ),
}
"""Pages whose examples are run by test_readme, test_formats_page, and the tests named after the pages."""

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


def _printed():
    """Part of what the examples of each page print, as the page shows it where it shows it."""
    stores = (DOCS / "how_to" / "existing_stores.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"```text\n(positions of .*?)```", stores, re.DOTALL)
    return {
        "concepts/alternatives.md": text_blocks(DOCS / "concepts" / "alternatives.md")[0],
        "concepts/rank_then_order.md": text_blocks(DOCS / "concepts" / "rank_then_order.md")[1],
        "how_to/existing_stores.md": f"{table}[0, 1, 2]\n"
        "0 {'start_index': 0, 'end_index': 26}\n1 {'start_index': 26, 'end_index': 52}\n",
        "how_to/agents.md": "[1] book.txt\nShe left port in mid-May. \n[2] She came back with salt.\n---\n"
        "[3] book.txt\nThe captain is Ada Brand. \n\n[1] (already shown)\n---\n"
        "3 book.txt None Span(start=0, end=26, page=None)\n(7,)\n()\n"
        "book.txt The captain is Ada Brand.  {'start': 0, 'end': 26, 'page': None}\n"
        "[3] book\nIt goes on.\n\n[2] (already shown)\nIt begins.\n\nIt goes on.",
        "how_to/chains_and_engines.md": "Ada Brand.\n{}{}{}voyages\n".format(
            *text_blocks(DOCS / "how_to" / "chains_and_engines.md")[1:]
        ),
        "how_to/continuity.md": "1\n",
        "how_to/neighbors.md": "3\n3\n",
        "how_to/prompt_caching.md": text_blocks(DOCS / "how_to" / "prompt_caching.md")[0] + "0 of ",
        "how_to/questions.md": "1\n",
        "how_to/rerankers.md": "[0, 52]\n[0, 52]\n",
        "how_to/ray.md": "complete 0 questions in cells are left\n",
        "how_to/tenants.md": "2\n2\n",
        "how_to/vector_cache.md": " vectors deleted\n",
    }


PAGES = sorted(_printed())


# The classic chains of LangChain are shown next to ours.
@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
# LlamaIndex looks at each attribute of an agent.
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince211")
@pytest.mark.parametrize("page", PAGES)
def test_examples_run_as_they_stand(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    names = readers_names()
    for block in python_blocks(DOCS / page):
        if "deepagents" in block:
            continue  # run by tests/integration/test_deep_agents.py
        exec(compile(block, page, "exec"), names)
    assert _printed()[page] in capsys.readouterr().out


def test_no_page_has_an_example_that_is_not_run():
    with_examples = {path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")}
    assert with_examples == {*(DOCS / page for page in PAGES), *ELSEWHERE}


def test_the_check_of_a_store_prints_what_the_page_shows():
    """The store that docs/how_to/existing_stores.md describes."""
    with_offsets, without = (
        RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200, add_start_index=wanted)
        for wanted in (True, False)
    )

    def add(splitter, text, source, **more):
        store.add_documents(splitter.split_documents([Document(text, metadata={"source": source, **more})]))

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    add(without, topics["compound"], "compound.md")
    add(with_offsets, topics["types"], "types.md")
    names = topics["specialnames"]
    for number, start in enumerate(range(0, len(names), 3000)):
        add(without, names[start : start + 3000], "names.pdf", page=number)
    formats = topics["formatstrings"]
    add(with_offsets, formats, "formats.md")
    add(with_offsets, formats.replace("replacement field", "placeholder", 8), "formats.md")
    page = (DOCS / "how_to" / "existing_stores.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(InMemoryVectorStore: .*?)```", page, re.DOTALL)
    # The numbers, and by them the sequence of the sources, are those of one version of Python's reference.
    printed, shown = (
        sorted(re.sub(r"\d+", "0", " ".join(line.split())) for line in text.splitlines())
        for text in (str(check_positions(store)), shown)
    )
    assert printed == shown


def test_the_experiment_that_tests_order_can_be_planned(monkeypatch, tmp_path):
    page = (DOCS / "how_to" / "test_order.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order.toml").write_text(block, encoding="utf-8")
    result = CliRunner().invoke(app, ["compare", "order.toml", "--plan"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("4 cells")
    head, *rows = re.findall(r"^\| (.+) \|$", page, re.MULTILINE)
    deviations = [float(one) for one in re.findall(r"s = ([\d.]+)", head)]
    for difference, *numbers in (row.split(" | ") for row in rows):
        expected = [7.85 * (one / float(difference.split()[0])) ** 2 for one in deviations]
        assert [float(number.replace(",", "")) for number in numbers] == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize("step", ["answer", "map", "rerank", "route", "variants"])
def test_the_question_stands_behind_the_context_as_the_page_about_caching_says(step):
    template = getattr(OUR_PROMPTS, step)
    assert template.system
    assert "{" not in template.system
    assert template.user.index("{context}") < template.user.index("{question}")


@every_document
def test_what_comes_from_code_is_up_to_date(path):
    document = path.read_text(encoding="utf-8")
    assert generated(document) == document, "run: make docs"


def test_every_part_that_comes_from_code_is_somewhere():
    marks = [re.findall(r"^<!-- /(.+?) -->$", path.read_text(encoding="utf-8"), re.MULTILINE) for path in DOCUMENTS]
    shown = {name for names in marks for name in names}
    assert shown <= set(PARTS)
    # Not every example is; examples/README.md has all.
    assert [name for name in set(PARTS) - shown if not name.startswith("example ")] == []


CHOICES = {
    "order": get_args(Order),
    "on_missing_position": get_args(OnMissingPosition),
    "on_uncertain": get_args(OnUncertain),
    "source_ranking": get_args(get_args(SourceRanking)[0]),
    "rank_by": get_args(RankBy),
    "overflow": get_args(Overflow),
    "on_error": get_args(OnError),
}


@pytest.mark.parametrize(("option", "values"), CHOICES.items())
def test_each_value_of_an_option_is_defined(option, values):
    page = (DOCS / "reference" / "options.md").read_text(encoding="utf-8")
    if f"### {option}\n" in page:
        rows = re.findall(r'^\| `"(\w+)"` \|', page.partition(f"### {option}\n")[2].partition("\n#")[0], re.MULTILINE)
    else:
        (table,) = re.findall(rf'^\| `{option}`( \| `".*?)(?=^\| `|^$)', page, re.MULTILINE | re.DOTALL)
        rows = re.findall(r'\| `"(\w+)"` \|', table)
    assert tuple(rows) == values


@pytest.mark.parametrize("field", HEADER_FIELDS)
def test_each_field_of_a_header_is_defined(field):
    page = (DOCS / "reference" / "options.md").read_text(encoding="utf-8")
    assert f"`{{{field}}}`" in page.partition("### separator")[2]


COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_the_help_tells_is_on_the_page(command):
    told = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).stdout
    page = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## oprag {command}\n")[2].partition("\n## ")[0]
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", told)) - {"--help"}
    assert options == set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", section))
    assert " ".join(COMMANDS[command].help.split("\n\n")[0].split()) in section


def test_a_default_of_nought_is_told():
    page = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    assert "| `--continuity` | `0` |" in page
    assert "| `--json` |  |" in page


@every_document
def test_links_lead_somewhere_on_github(path):
    links = re.findall(r"(?<=\]\()(?!\w+:|#)[^)\s#]+", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_public_name_of_the_core_is_in_the_reference():
    pages = "".join(
        (DOCS / "reference" / "api" / name).read_text(encoding="utf-8") for name in ("oprag.md", "errors.md")
    )
    shown = re.findall(r"^::: oprag\.(?:arrange\.)?(\w+)$", pages, re.MULTILINE)
    assert sorted(shown) == sorted({*oprag.__all__, "errors"} - {"__version__"})


@pytest.mark.parametrize("page", ["langchain", "llama_index", "methods", "profile", "stores", "compare"])
def test_every_other_package_is_in_the_reference(page):
    text = (DOCS / "reference" / "api" / f"{page}.md").read_text(encoding="utf-8")
    module, *alone = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert module.rpartition(".")[2] == page
    package = import_module(module)
    # Griffe takes a name for the module that is called the same.
    hidden = {one.name for one in pkgutil.iter_modules(getattr(package, "__path__", ()))} & set(package.__all__)
    assert set(alone) == {f"{module}.{name}.{name}" for name in hidden}
    assert f"`{module}`" in (DOCS / "reference" / "stability.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "link", "on_site"),
    [
        ("docs/reference/methods.md", "../how_to/agents.md", "../how_to/agents.md"),
        ("docs/reference/methods.md", "experiment_file.md#axes", "experiment_file.md#axes"),
        ("docs/reference/api/oprag.md", "../stores.md", "../stores.md"),
        ("docs/index.md", "../examples/langchain_agent.py", "source/examples/langchain_agent.py.md"),
        ("docs/how_to/agents.md", "../../examples/langchain_agent.py", "../source/examples/langchain_agent.py.md"),
        ("docs/index.md", "../CHANGELOG.md", "changelog.md"),
        ("CHANGELOG.md", "docs/reference/stores.md", "reference/stores.md"),
        ("README.md", "docs/reference/stores.md", "../reference/stores.md"),
        ("docs/index.md", "not_there.md", "not_there.md"),
        ("docs/index.md", "https://arxiv.org/abs/2409.01666", "https://arxiv.org/abs/2409.01666"),
        ("docs/index.md", "#options", "#options"),
    ],
)
def test_links_lead_to_the_same_place_on_the_site(path, link, on_site):
    assert links_on_site(f"See [it]({link}).", path) == f"See [it]({on_site})."


def test_files_that_become_pages():
    text = "[a](../examples/langchain_agent.py), [b](../CHANGELOG.md), [c](a.md), [d](../none.py), [e](../../none)"
    assert linked_outside(text, "docs/index.md") == {"examples/langchain_agent.py", "CHANGELOG.md"}


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="{}"></script>',
        "<script async src={}></script>",
        '<link href="{}" rel="stylesheet">',
        '<link rel="preconnect" href="{}" crossorigin>',
        '<img alt="a > b" src="{}">',
        '<object data="{}"></object>',
        '<svg><image href="{}" /></svg>',
        "<iframe src='{}'></iframe>",
        "@font-face {{ src: url({}) }}",
        '@import "{}";',
    ],
)
@pytest.mark.parametrize("address", ["https://fonts.example/a", "//fonts.example/a"])
def test_what_would_be_fetched_from_elsewhere_is_found(tag, address):
    assert fetched_from_elsewhere(f"<p>{tag.format(address)}</p>") == [address]


def test_links_and_own_files_are_not_fetched_from_elsewhere():
    page = """
<a href="https://arxiv.org/abs/2409.01666">paper</a> <link rel="canonical" href="https://oprag.example/">
<link rel="stylesheet" href="assets/main.css"> <script src="../assets/bundle.js"></script>
<img src="data:image/png;base64,//8="> <svg xmlns="http://www.w3.org/2000/svg"></svg>
<style>a { background: url("assets/a.svg") url(data:image/svg+xml;charset=utf-8,x) }</style>
"""
    assert fetched_from_elsewhere(page) == []
