"""A check of stores, retrievers and documents agrees with what retrieval would say of them."""

import random
import re
import warnings

import pytest
from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import PositionKind
from oprag._internal.warn import forget
from oprag.errors import ChunkError, OptionError, PositionWarning, SourceWarning
from oprag.langchain import (
    OrderPreservingRetriever,
    check_positions,
    stamp_positions,
)
from tests.adapters.langchain.conftest import edited, giving, parts, prose, store_of
from tests.adapters.langchain.test_store_order import split, windows
from tests.unknown_store import UnknownStore


def only(found):
    (source,) = found.sources
    return source


def pages(number=4, **options):
    documents = [Document(f"{page} " * 40, metadata={"source": "a.pdf", "page": page}) for page in range(number)]
    return RecursiveCharacterTextSplitter(chunk_size=30, chunk_overlap=0, **options).split_documents(documents)


def told(store, k, questions, **options):
    """What retrieval warns of about the order, but for the names and numbers in it."""
    messages = set()
    for question in questions:
        forget()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            OrderPreservingRetriever(vectorstore=store, k=k, token_budget=None, **options).invoke(question)
        messages |= {str(one.message) for one in caught if issubclass(one.category, PositionWarning | SourceWarning)}
    return {plain(re.split(r" \(|; (?:check_positions|pass )", message)[0]) for message in messages}


def plain(message):
    return re.sub(r"^\d+ of \d+", "N of N", message)


SCENARIOS = {
    "windows": lambda: windows("a.txt", 1),
    "windows of two": lambda: [*windows("a.txt", 1), *windows("b.txt", 2)],
    "default splitter": lambda: split("a.txt", 1),
    "offsets": lambda: split("a.txt", 1, add_start_index=True),
    "stamped": lambda: stamp_positions(split("a.txt", 1)),
    "stamped twice": lambda: [*stamp_positions(split("a.txt", 1)[:9]), *stamp_positions(split("a.txt", 1)[9:])],
    "pages": pages,
    "pages with offsets": lambda: pages(add_start_index=True),
    "one chunk a page": lambda: [Document(f"Page {n}.", metadata={"source": "a.pdf", "page": n}) for n in range(9)],
    "torn apart": lambda: [*windows("a.txt", 1)[9:], *windows("a.txt", 1)[:9]],
    "another version": lambda: [*windows("a.txt", 1), *edited(windows("a.txt", 1))],
    "added twice": lambda: [*windows("a.txt", 1), *windows("a.txt", 1)],
    "added twice with offsets": lambda: split("a.txt", 1, add_start_index=True) * 2,
    "no source": lambda: [Document(document.page_content) for document in windows("a.txt", 1)],
    "parts": lambda: [
        Document(document.page_content, metadata={"source": f"https://a.example/b.html#part{number}"})
        for number, document in enumerate(windows("a.txt", 1))
    ],
    "restarting offsets": lambda: [
        document for seed in range(3) for document in split("a.txt", seed, add_start_index=True)
    ],
    "shuffled with offsets": lambda: random.Random(1).sample(
        chunks := split("a.txt", 1, add_start_index=True), len(chunks)
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_finds_the_problems_that_retrieval_warns_of(scenario):
    documents = SCENARIOS[scenario]()
    store = store_of(documents)
    found = check_positions(store)
    problems = {plain(source.problem) for source in found.sources if source.problem}
    everything = told(store, len(documents), ["all"])
    a_part = told(store, max(2, len(documents) // 4), map(str, range(8)))
    assert found.ok == (not everything)
    assert found.ok == (not everything | a_part)
    assert problems <= everything
    # A list of the same documents has no sequence of a store.
    without = told(store, len(documents), ["all"], store_order=False)
    assert check_positions(documents).ok == (not without)


def test_a_retriever_has_its_filter():
    store = store_of([*split("a.txt", 1), *windows("b.txt", 2)])

    def only_b(document):
        return document.metadata["source"] == "b.txt"

    assert not check_positions(store).ok
    for retriever in (
        store.as_retriever(search_kwargs={"filter": only_b}),
        OrderPreservingRetriever(vectorstore=store, search_kwargs={"filter": only_b}),
        OrderPreservingRetriever(retriever=store.as_retriever(search_kwargs={"filter": only_b})),
    ):
        found = check_positions(retriever)
        assert (only(found).source, found.ok) == ("b.txt", True)


def test_our_retriever_has_its_options():
    documents = [Document(text, metadata={"book": "b", "verse": verse}) for verse, text in enumerate("abc")]
    store = store_of(documents)
    retriever = OrderPreservingRetriever(vectorstore=store, source_key="book", position_key="verse")
    assert (only(check_positions(retriever)).source, check_positions(retriever).ok) == ("b", True)
    assert not check_positions(store).ok
    assert check_positions(store, source_key="book", position_key="verse").ok
    assert not check_positions(OrderPreservingRetriever(vectorstore=store_of(windows("a", 1)), store_order=False)).ok


def test_our_retriever_has_its_texts():
    store = store_of(windows("a.txt", 1)[::-2])
    text = prose(800, 1)
    assert not check_positions(store).ok
    check = check_positions(OrderPreservingRetriever(vectorstore=store, read_source={"a.txt": text}))
    assert check.ok
    assert only(check).kind is PositionKind.OFFSET
    assert check_positions(store, read_source={"a.txt": text}).ok
    by_filter = OrderPreservingRetriever(vectorstore=store, read_source=lambda name, filter: {"a.txt": text}[name])
    with pytest.raises(OptionError, match="requires filter, but check_positions asks no question"):
        check_positions(by_filter)


def test_a_store_that_is_not_known_is_left_out_beside_one_that_is():
    known, unknown = store_of(windows("a.txt", 1)), UnknownStore(store_of(windows("b.txt", 2)))
    found = check_positions(
        EnsembleRetriever(retrievers=[unknown.as_retriever(), known.as_retriever()], weights=[0.5, 0.5])
    )
    assert only(found).source == "a.txt"


def test_retrievers_that_have_their_documents():
    retriever = ParentDocumentRetriever(
        vectorstore=store_of([]),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=50, chunk_overlap=0),
    )
    retriever.add_documents(windows("a.txt", 1), ids=None)
    found = check_positions(retriever)
    assert (only(found).chunks, only(found).kind) == (len(windows("a.txt", 1)), PositionKind.STORE)


@pytest.mark.parametrize("given", [[1], ["text"], [Document("a"), None]])
def test_other_things_in_a_list_are_refused(given):
    with pytest.raises(ChunkError, match="expected LangChain documents"):
        check_positions(given)


@pytest.mark.parametrize(
    "given",
    [
        *(None, 5, "a.txt", {"a": 1}, giving([])),
        UnknownStore(store_of([])),
        UnknownStore(store_of([])).as_retriever(),
        OrderPreservingRetriever(retriever=giving([])),
    ],
)
def test_what_cannot_be_listed_is_refused_with_a_way_out(given):
    with pytest.raises(OptionError, match=r"cannot be listed; pass the documents .*check_positions\(documents\)"):
        check_positions(given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_chunks": 0}, "max_chunks must be an integer >= 1"),
        ({"read_source": 5}, "read_source must be a folder, a mapping, a function or the documents"),
        ({"read_source": "/not/there"}, "read_source must be an existing folder"),
        ({"source_key": 5}, "source_key"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        check_positions(parts(), **options)


# The line that deletes a source.


def test_the_line_of_a_check_with_a_filter_deletes_nothing_of_other_tenants():
    chunks = [Document(f"part {at}", metadata={"source": "a.txt", "start_index": 10 * at}) for at in range(4)]
    of_tenants = [
        Document(one.page_content, metadata={**one.metadata, "tenant": tenant}) for tenant in "ab" for one in chunks
    ]
    store = store_of([*of_tenants, of_tenants[0]])
    mine = store.as_retriever(search_kwargs={"filter": lambda document: document.metadata["tenant"] == "a"})
    store.add_documents([of_tenants[0]])
    (note,) = check_positions(mine).notes
    exec(note.suggestion, {"store": store, "retriever": mine, "check_positions": check_positions})
    assert [row["metadata"]["tenant"] for row in store.store.values()] == ["b"] * len(chunks)


def test_the_line_reads_all_of_a_source_that_was_read_in_part():
    chunks = windows("a.txt", 1)
    store = store_of([*chunks * 3, *windows("b.txt", 2)])
    read = 2 * len(chunks) + 9
    sample = check_positions(store, max_chunks=read)
    assert str(sample).startswith(f"InMemoryVectorStore: the first {read} chunks from 1 source")
    with pytest.raises(OptionError, match=f"only the first {read} chunks were read"):
        sample.ids("a.txt")
    (line,) = (line.strip() for line in str(sample).splitlines() if "delete(" in line)
    exec(line, {"store": store, "check_positions": check_positions})
    assert {row["metadata"]["source"] for row in store.store.values()} == {"b.txt"}
