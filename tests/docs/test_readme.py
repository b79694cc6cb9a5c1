"""What the README shows is run, and what it says of the options is what the code says."""

import re

import pytest

from oprag import DocumentIndex, LocalEmbedder, build_context
from oprag.methods import registry
from oprag.stores import adapter
from tests.compare.folders import write_data
from tests.counting import CountingEmbeddings
from tests.reader import ROOT, python_blocks, readers_names, text_blocks

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "docs/reference/methods.md", "docs/how_to/thresholds.md", "docs/reference/stores.md")
BLOCKS = {name: python_blocks(ROOT / name) for name in PAGES}


@pytest.fixture
def names():
    """What a reader's application has."""
    return readers_names()


def test_blocks_run_as_they_stand(names, capsys):
    assert len(BLOCKS["README.md"]) == 2
    for block in BLOCKS["README.md"]:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "order source" in printed
    assert "Ada Brand." in printed


@pytest.fixture
def methods_as_before(monkeypatch):
    monkeypatch.setattr(registry, "_methods", dict(registry._methods))


@pytest.mark.usefixtures("methods_as_before")
def test_blocks_about_methods_run_as_they_stand(names, capsys):
    for block in BLOCKS["docs/reference/methods.md"]:
        exec(compile(block, "methods.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "Ada Brand." in printed
    assert "map_reduce" in printed
    assert [call.step for call in names["chain"].answer("Who?").calls] == ["answer", "refine"]


def test_blocks_about_thresholds_run_as_they_stand(names, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    for block in BLOCKS["docs/how_to/thresholds.md"]:
        exec(compile(block, "thresholds.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "cosine" in printed
    assert printed.splitlines()[-1] in ("2", "3")


@pytest.fixture
def stores_as_before(monkeypatch):
    monkeypatch.setattr(adapter, "_registered", dict(adapter._registered))


@pytest.mark.usefixtures("stores_as_before")
def test_blocks_about_stores_run_as_they_stand(names, capsys):
    counting = CountingEmbeddings()
    names["embeddings"] = counting
    for block in BLOCKS["docs/reference/stores.md"]:
        exec(compile(block, "stores.md", "exec"), names)
    assert capsys.readouterr().out == "3 documents, and one question was embedded\n"
    assert counting.embedded == (1, 3)
    assert type(adapter.adapter_of(names["YourNodeStore"]())) is names["YourNodeAdapter"]


def test_every_store_with_an_adapter_is_in_the_table_of_its_framework():
    page = (ROOT / "docs" / "reference" / "stores.md").read_text(encoding="utf-8")
    of_langchain, of_llama_index = page.split("## LlamaIndex")
    for path in adapter._ADAPTERS:
        section = of_llama_index if path.startswith("llama_index") else of_langchain
        assert f"`{path.rpartition('.')[2]}`" in section


def test_the_methods_are_those_of_the_package():
    table = (ROOT / "docs" / "reference" / "methods.md").read_text(encoding="utf-8").split("## Everything")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == sorted(
        registry.OUR_METHODS, key=["stuff", "refine", *registry.OUR_METHODS].index
    )


def test_the_first_example_is_what_the_code_returns():
    story = (ROOT / "examples" / "compare_orders" / "orchard.md").read_text(encoding="utf-8")
    local = LocalEmbedder()
    index = DocumentIndex.from_texts(
        {"orchard.md": story}, local, local.tokenizer, splitter="recursive", chunk_size=40, chunk_overlap=0
    )
    found = index.search("Why was the first basket brought to Anna?", 5)
    as_found, as_passages = (block.splitlines() for block in text_blocks(ROOT / "README.md")[:2])
    assert as_found == [chunk.text.strip() for chunk in found]
    passages = build_context(found).passages
    assert as_passages == [f"[{number}] {passage.text.strip()}" for number, passage in enumerate(passages, 1)]


def test_it_is_short_and_its_first_screen_has_the_change():
    lines = README.splitlines()
    assert len(lines) <= 110
    assert "+ retriever = OrderPreservingRetriever(vectorstore=store, k=64)" in lines[:32]
