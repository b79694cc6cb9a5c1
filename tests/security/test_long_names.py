"""Names and metadata as long as a document: what is shown of them is short, and only a part of them is masked."""

import base64
import random
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import TextNode

from oprag import Chunk, build_context, langchain, llama_index
from oprag._internal import masking
from oprag._internal.warn import forget
from oprag.agents.working_context import WorkingContext
from oprag.errors import MissingPositionError
from oprag.methods.answer import Answer
from oprag.methods.method_answers import MethodAnswers

LENGTH = 800_000
NAMES = {
    "letters": "x" * LENGTH,
    "data": "data:text/html;base64," + base64.b64encode(random.Random(0).randbytes(LENGTH * 3 // 4)).decode(),
    "words": "some words of a page " * (LENGTH // 21),
    "path": "/data" + "/folder" * (LENGTH // 7) + "/report.pdf",
    "address": f"https://ada:{'swordfish' * (LENGTH // 9)}@host/page",
}
FEW, MANY = 8, 128


@pytest.fixture(autouse=True)
def work(monkeypatch):
    """Far fewer characters are masked than one name has for each chunk."""
    masked: list[int] = []
    without_keys = masking.without_keys

    def counting(text):
        masked.append(len(text))
        return without_keys(text)

    forget()
    monkeypatch.setattr(masking, "without_keys", counting)
    yield
    assert sum(masked) < 3 * LENGTH


def check(text, limit):
    assert len(text) < limit
    assert "swordfish" not in text


def chunks(name, field, count):
    """Chunks with such a source, page, id or key; each with a source of its own if there are few of them."""
    for number in range(count):
        label = f"{name}{number}" if count == FEW and not name.endswith(".pdf") else name
        all_about: dict[str, Any] = {"source": {"source": label}, "page": {"page_label": label}, "key": {label: 1}}
        about = all_about.get(field, {})
        yield Chunk(f"text {number}", number, metadata={"source": "a", "page": number, **about}, id=label)


CASES = [
    ("letters", "source", FEW),
    ("letters", "id", MANY),
    ("data", "page", MANY),
    ("data", "key", FEW),
    ("words", "key", MANY),
    ("path", "source", MANY),
    ("address", "source", FEW),
    ("address", "page", MANY),
]
each_case = pytest.mark.parametrize(
    ("name", "field", "count"),
    [(NAMES[name], *how) for name, *how in CASES],
    ids=[f"{one[0]}-{one[1]}" for one in CASES],
)


@each_case
def test_reports_of_a_context_and_an_answer(name, field, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        context = build_context(chunks(name, field, count), k=count - 1)
    for warning in caught:
        check(str(warning.message), 2_000)
    check(context.explain(), 600 * count)
    for shown in (*context.kept, *context.passages, *(chunk.label() for chunk in context.kept), context):
        check(f"{shown!r}", 1_000)
    given: Any = {"method": "stuff", "contexts": (context,), "calls": (), "passages": context.passages}
    answer = Answer(name, "".join(f"[{number}]" for number in range(1, count)), **given, notes=(name,), cited=True)
    check(answer.explain(), 1_000 * count + 20_000)
    check(str(MethodAnswers(name, (answer,))), 10_000)


@each_case
def test_errors(name, field, count):
    with pytest.raises(MissingPositionError) as caught:
        build_context(chunks(name, field, FEW), position_key="number", on_missing_position="error")
    check(str(caught.value), 2_000)


@each_case
def test_checks_of_positions(name, field, count):
    given = [*chunks(name, field, count)]
    documents = [Document(one.text, id=one.id, metadata=dict(one.metadata)) for one in given]
    nodes = [TextNode(text=one.text, id_=one.id, metadata=dict(one.metadata)) for one in given]
    for found in (langchain.check_positions(documents), llama_index.check_positions(nodes)):
        check(str(found), 20_000)
        check(repr(found.to_dict()), 5_000 * count)
        check(repr(found.sources), 500 * count)


@each_case
def test_what_a_model_reads(name, field, count):
    shown = WorkingContext().add(chunks(name, field, FEW)).text
    check(shown, 500 * FEW)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    given = [*chunks(name, field, FEW)]
    store.add_documents([Document(one.text, metadata={**one.metadata, "chunk_index": one.rank}) for one in given])
    _, read, outline, grep = langchain.create_reading_tools(store)
    check(outline.invoke({}), 300 * FEW)
    check(grep.invoke({"pattern": given[0].text}), 1_000 * FEW)
    source = given[0].metadata["source"]
    check(outline.invoke({"source": source}), 300 * FEW)
    check(read.invoke({"source": source, "start": 1, "end": 1}), 500)
    check(read.invoke({"source": f"not {source}", "start": 1, "end": 1}), 2_000)


@each_case
def test_reports_of_what_was_written(name, field, count):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    given = [Document(one.text, metadata={**one.metadata, "page": None}) for one in chunks(name, field, FEW)]
    store.add_documents(given * 2)
    written = langchain.write_positions(store, dry_run=True, read_source={})
    check(repr(written), 800 * FEW)


def test_the_end_of_a_path_is_shown():
    source = "/data" + "/folder" * 500 + "/report.pdf"
    chunks = [Chunk(f"text {number}", number, source, {"page": number}) for number in range(2)]
    context = build_context(chunks, source_ranking="name")
    for text in (context.explain(), context.kept[0].label(), repr(context.kept[0])):
        assert "report.pdf" in text
