"""Documents without any position in a store without a sequence: their places in the text of the source."""

import random
import time
import warnings

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import PositionKind
from oprag._internal.warn import forget
from oprag.errors import PositionWarning
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
from tests.adapters.langchain.conftest import giving, prose, store_of

QUESTION = "Where does the river end?"
TEXTS = {name: prose(800, seed) for name, seed in (("voyage.txt", 1), ("letters.txt", 2))}


def split(texts=TEXTS, size=300, overlap=60):
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap)
    chunks = splitter.split_documents([Document(text, metadata={"source": name}) for name, text in texts.items()])
    # As a store without a sequence returns them.
    random.Random(3).shuffle(chunks)
    return chunks


def over(chunks, **options):
    return OrderPreservingRetriever(vectorstore=store_of(chunks), **{"k": 20, "store_order": False, **options})


def told_of(ask):
    """What it returns, and the warnings."""
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ask()
    return result, [str(warning.message) for warning in caught]


def starts(documents, texts=TEXTS):
    """Where each document begins, by source."""
    found: dict[str, list[int]] = {}
    for document in documents:
        source = document.metadata["source"]
        found.setdefault(source, []).append(texts[source].index(document.page_content))
    return found


def in_order(documents, texts=TEXTS):
    return all(places == sorted(places) for places in starts(documents, texts).values())


def folder_of(path, texts=TEXTS):
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["folder", "mapping", "function"])
def test_chunks_without_a_position_are_found_in_the_text(tmp_path, kind):
    given = {"folder": folder_of(tmp_path), "mapping": TEXTS, "function": TEXTS.__getitem__}[kind]
    retriever = over(split(), read_source=given)
    documents, told = told_of(lambda: retriever.invoke(QUESTION))
    assert len(documents) == 20
    assert in_order(documents)
    assert told == []
    assert not in_order(told_of(lambda: over(split()).invoke(QUESTION))[0])
    context = retriever.get_context(QUESTION)
    assert {source.kind for source in context.sources} == {PositionKind.OFFSET}
    assert "text of the source" in context.explain()
    # Offsets that are known let overlaps be joined.
    for passage in context.passages:
        assert " ".join(passage.text.split()) in " ".join(TEXTS[passage.source].split())
    assert len(context.passages) < len(context.kept)
    compressed = OrderPreservingCompressor(read_source=given).compress_documents(split()[:20], QUESTION)
    assert len(compressed) == 20
    assert in_order(compressed)


def test_each_text_is_read_once_and_only_where_metadata_do_not_tell():
    read = []

    def read_source(name):
        read.append(name)
        return TEXTS[name]

    retriever = over(split(), read_source=read_source)
    for _ in range(3):
        retriever.invoke(QUESTION)
    assert sorted(read) == sorted(TEXTS)
    stamped = [
        document.model_copy(update={"metadata": {**document.metadata, "start_index": start}})
        for document in split()
        for start in [TEXTS[document.metadata["source"]].index(document.page_content)]
    ]
    over(stamped, read_source=read_source).invoke(QUESTION)
    over(split(), read_source=read_source, order="rank").invoke(QUESTION)
    assert len(read) == 2


def test_a_source_that_cannot_be_read_keeps_its_rank_with_a_warning(tmp_path):
    chunks = split()
    ranked, _ = told_of(lambda: over(chunks).invoke(QUESTION))
    documents, told = told_of(lambda: over(chunks, read_source=tmp_path).invoke(QUESTION))
    assert [document.page_content for document in documents] == [document.page_content for document in ranked]
    assert any("cannot be read, so its chunks are not located in it" in one for one in told)
    assert any("have no position" in one for one in told)


def test_a_changed_text_is_read_again_after_a_while(monkeypatch):
    texts = {"voyage.txt": prose(300, 1)}
    store = store_of(split(texts))
    retriever = OrderPreservingRetriever(vectorstore=store, k=50, store_order=False, read_source=texts)
    assert in_order(retriever.invoke(QUESTION), texts)
    texts["voyage.txt"] = prose(300, 9)
    store.delete(list(store.store))
    store.add_documents(split(texts))
    with pytest.warns(PositionWarning, match="have no position"):
        retriever.invoke(QUESTION)
    later = time.monotonic() + 61
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert in_order(retriever.invoke(QUESTION), texts)


def test_a_function_can_require_the_filter_of_the_search():
    asked = []

    def read_source(name, filter):
        asked.append((name, filter.__name__))
        return TEXTS[name]

    def of_the_reds(document):
        return True

    def of_the_blues(document):
        return True

    retriever = over(split(), read_source=read_source)
    for filter in (of_the_reds, of_the_blues, of_the_reds):
        assert in_order(retriever.invoke(QUESTION, filter=filter))
    assert sorted(asked) == sorted((name, one) for name in TEXTS for one in ("of_the_reds", "of_the_blues"))


def test_each_filter_has_its_own_texts():
    """Functions that are made for a question take each other's place in memory, and have the same repr."""
    tenants = {"red": TEXTS, "blue": {name: " ".join(text.split()[::-1]) for name, text in TEXTS.items()}}
    chunks = {name: split(texts) for name, texts in tenants.items()}
    for name, documents in chunks.items():
        for document in documents:
            document.metadata["tenant"] = name
    retriever = over(
        [*chunks["red"], *chunks["blue"]],
        read_source=lambda source, filter: tenants[filter(None)][source],
    )

    def ask(tenant):
        def only(document):
            return tenant if document is None else document.metadata["tenant"] == tenant

        return told_of(lambda: retriever.invoke(QUESTION, filter=only))

    for tenant in ("red", "blue") * 5:
        documents, told = ask(tenant)
        assert told == []
        assert in_order(documents, tenants[tenant])


@pytest.mark.parametrize("wrong", [5, ["a"], "/no/such/folder", lambda: None])
def test_wrong_values_are_rejected_at_construction(wrong):
    if callable(wrong):

        async def wrong(name):
            return TEXTS[name]

    with pytest.raises(ValueError, match="read_source must be"):
        over(split(), read_source=wrong)


def test_warnings_about_sources_that_cannot_be_read_are_short():
    def fails(name):
        raise ConnectionError(f"no answer {'again ' * 100}")

    def requires_a_filter(name, filter):
        return ""

    name = f"/data/{'folder/' * 500}manual.pdf"
    chunks = [Document(text, metadata={"source": name}) for text in ("one", "two")]
    _, told = told_of(lambda: over(chunks, read_source=fails).invoke(QUESTION))
    assert told[0].startswith("…")
    assert "/manual.pdf' cannot be read, so its chunks are not located in it: SourceReadError: read_source" in told[0]
    retriever = OrderPreservingRetriever(retriever=giving(chunks), read_source=requires_a_filter)
    _, more = told_of(lambda: retriever.invoke(QUESTION))
    assert more[0].startswith("read_source is not used, because it requires the filter of the search")
    assert max(map(len, [*told, *more])) <= 200
