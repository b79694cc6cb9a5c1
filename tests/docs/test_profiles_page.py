"""What docs/how_to/profiles.md shows is run as it stands."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from oprag import ContextOptions, __version__
from oprag.index.tokenizers import COUNTERS
from oprag.methods.profile import Profile

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "profiles.md").read_text(encoding="utf-8")
(SHOWN,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PARTS = ("The captain is Ada Brand.", "She left port in May.", "She came back with salt.")


@pytest.fixture
def names():
    """What a reader's application has."""
    about = [{"source": "book.txt", "chunk_index": number} for number in range(3)]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(part, metadata=one) for part, one in zip(PARTS, about, strict=True)])
    nodes = [TextNode(text=part, metadata=one) for part, one in zip(PARTS, about, strict=True)]
    return {
        "store": store,
        "llm": FakeListChatModel(responses=["Ada Brand."]),
        "index": VectorStoreIndex(nodes, embed_model=MockEmbedding(8)),
        "llama_llm": MockLLM(),
    }


def test_blocks_run_as_they_stand(names, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) == 5
    for block in BLOCKS:
        exec(compile(block, "profiles.md", "exec"), names)
    assert (tmp_path / "oprag.toml").read_text(encoding="utf-8") == SHOWN.replace("oprag 0.1.0", f"oprag {__version__}")
    printed = capsys.readouterr().out.splitlines()
    said = re.findall(r"print\(.*\)  # (.*)", PAGE)
    assert len(said) == 3
    assert [line for line in printed if line in said] == said
    assert names["engine"].method == "refine"
    for kind in ("retriever", "compressor", "postprocessor"):
        assert (names[kind].k, names[kind].token_budget) == (32, 4096)
    # Counted in words.
    assert printed[-2] == str(len(" ".join(PARTS).split()))


def test_every_named_counter_and_no_other_is_named():
    assert re.findall(r'"([a-z]+(?::[A-Z]+)?)"', PAGE.split("go by these:")[1].split("\n- ")[0]) == [*COUNTERS]


def test_functions_that_are_named_are_options_that_can_be_functions():
    named = re.findall(r"`(\w+)=`", PAGE.split("Give them as keywords (")[1].split(")")[0])
    assert set(named) <= {one.name for one in fields(ContextOptions) if one.metadata["function"]}


def test_the_tables_are_those_of_a_profile():
    assert set(re.findall(r"^\[(\w+)\]$", SHOWN, re.MULTILINE)) == {*Profile.model_fields} - {"format", "written_by"}
