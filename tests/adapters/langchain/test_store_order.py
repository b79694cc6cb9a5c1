"""Documents without any position, as LangChain's splitters leave them: their order is that of the store."""

import sys
import warnings

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiVectorRetriever,
)
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import PositionKind
from oprag._internal.warn import forget
from oprag.errors import OptionError
from oprag.langchain import OrderPreservingRetriever, check_positions
from oprag.stores import StoreAdapter, adapter, orders, register_store
from oprag.stores.in_memory import LangChainInMemory
from oprag.stores.retrievers import ListedDocuments
from tests.adapters.langchain.conftest import giving, prose, store_of

QUESTION = "Where does the river end?"


def windows(source, seed, size=200, overlap=40, **metadata):
    """Chunks that overlap, without a position."""
    text = prose(800, seed)
    starts = range(0, len(text) - overlap, size - overlap)
    return [Document(text[start : start + size], metadata={"source": source, **metadata}) for start in starts]


def split(source, seed, **options):
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=60, **options)
    return splitter.split_documents([Document(prose(800, seed), metadata={"source": source})])


def found(retriever, question=QUESTION):
    """The documents for a question, and the warnings about it."""
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        documents = retriever.invoke(question)
    return documents, [str(warning.message) for warning in caught]


def numbers(documents, chunks):
    """The place of each document among all chunks."""
    at = {chunk.page_content: number for number, chunk in enumerate(chunks)}
    return [at[document.page_content] for document in documents]


def by_rank(chunks):
    """The places of the documents that a store finds by itself."""
    return numbers(store_of(chunks).similarity_search(QUESTION, k=20), chunks)


def over(store, **options):
    return OrderPreservingRetriever(vectorstore=store, **{"k": 20, **options})


class Unlisted(InMemoryVectorStore):
    """A store whose chunks cannot be listed."""


class NoListing(StoreAdapter):
    """It reads nothing."""

    def vectors(self, keys):
        return {}


class OneSource(BaseRetriever):
    """Finds the chunks of the source that the question names."""

    docs: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return [document for document in self.docs if document.metadata["source"] == query]


def test_an_offset_that_puts_a_chunk_inside_another_is_checked_by_the_store():
    # A splitter that searches for its offsets finds the last notice where the first one is.
    notice = "Note: read the safety rules."
    texts = [text for section in range(30) for text in (f"{notice}\n\nSection {section}", f"Text {section}.")]
    text = "\n\n".join([*texts, notice])
    chunks = [Document(one, metadata={"source": "a", "start_index": text.find(one)}) for one in [*texts, notice]]
    documents, told = found(over(store_of(chunks), k=len(chunks)))
    assert numbers(documents, chunks) == list(range(len(chunks)))
    assert told == []


@pytest.mark.parametrize(
    ("wrap", "action"),
    [
        pytest.param(store_of, "check_positions(store) shows the fix", id="store"),
        pytest.param(giving, "pass {option}=...", id="any retriever"),
        pytest.param(lambda documents: store_of(documents, Unlisted), "pass {option}=...", id="store without listing"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_warning_names_one_action(wrap, action, named, monkeypatch):
    monkeypatch.setattr(adapter, "_registered", {})
    register_store(Unlisted, NoListing)
    documents = [Document(text, metadata={"source": "a.txt"} if named else {}) for text in ("one", "two", "three")]
    searched = wrap(documents)
    for store_order in (True, False):
        name = "vectorstore" if isinstance(searched, InMemoryVectorStore) else "retriever"
        _, told = found(OrderPreservingRetriever(**{name: searched}, store_order=store_order))
        option = "position_key" if named else "source_key"
        assert [one.rpartition("; ")[2] for one in told] == [action.format(option=option)]


def test_it_can_be_turned_off():
    chunks = windows("voyage.txt", 1)
    documents, told = found(over(store_of(chunks), store_order=False))
    assert numbers(documents, chunks) == by_rank(chunks)
    assert "have no position" in told[0]
    with pytest.raises(ValueError, match=r"store_order\n.*a valid boolean"):
        over(store_of(chunks), store_order="yes")


def test_what_was_deleted_and_changed_is_noticed_at_the_next_question():
    chunks = windows("voyage.txt", 1)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    ids = [str(number) for number in range(len(chunks))]
    store.add_documents(chunks, ids=ids)
    retriever = over(store, k=len(chunks))
    assert numbers(found(retriever)[0], chunks) == list(range(len(chunks)))
    store.delete(ids[:3])
    assert numbers(found(retriever)[0], chunks) == list(range(3, len(chunks)))
    # The same ids at another place.
    store.delete([ids[7]])
    store.add_documents([chunks[7]], ids=[ids[7]])
    documents, told = found(retriever)
    assert numbers(documents, chunks) == list(range(3, len(chunks)))
    assert told == []
    store.delete(ids)
    store.add_documents(chunks, ids=ids)
    assert numbers(found(retriever)[0], chunks) == list(range(len(chunks)))


@pytest.mark.filterwarnings("ignore:the chunks of a source are in the order in which they were added")
def test_a_source_with_too_many_chunks_is_not_listed_again_at_once(monkeypatch):
    monkeypatch.setattr(orders, "_MAX_CHUNKS", 10)
    chunks = windows("voyage.txt", 1, overlap=0)
    read: list[str] = []
    list_chunks = LangChainInMemory.chunks

    def recorded(self, field="", sources=()):
        for chunk in list_chunks(self, field, sources):
            read.append(chunk.text)
            yield chunk

    monkeypatch.setattr(LangChainInMemory, "chunks", recorded)
    retriever = over(store_of(chunks), k=12)
    for question in (QUESTION, "Who is the captain?"):
        places = numbers(retriever.invoke(question), chunks)
        assert places == sorted(places)
        assert len(read) == 11


def test_threads_share_what_is_known_of_many_sources(monkeypatch):
    monkeypatch.setattr(adapter, "_registered", {})
    register_store(OneSource, ListedDocuments)
    sources = {str(number): windows(str(number), number, 60, 20)[:2] for number in range(400)}
    listed = OneSource(docs=[chunk for chunks in sources.values() for chunk in chunks])
    retriever = OrderPreservingRetriever(retriever=listed)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            forget()
            found = retriever.batch([*sources], {"max_concurrency": 8})
    finally:
        sys.setswitchinterval(interval)
    assert found == [*sources.values()]


def test_pages_that_were_corrected_under_the_same_ids_are_noticed():
    texts = [chunk.page_content for chunk in windows("manual.pdf", 1, overlap=0)][:8]
    ids = [str(number) for number in range(8)]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    retriever = over(store, k=8)
    for page_of in (lambda number: 8 - number, lambda number: number):
        chunks = [
            Document(text, metadata={"source": "manual.pdf", "loc": {"pageNumber": page_of(number)}})
            for number, text in enumerate(texts)
        ]
        store.add_documents(chunks, ids=ids)
        documents, _ = found(retriever)
        pages = [document.metadata["loc"]["pageNumber"] for document in documents]
        assert pages == sorted(pages)


@pytest.mark.parametrize("order", ["rank", "edges"])
@pytest.mark.parametrize(
    ("options", "count"),
    [({"neighbors": 1}, 6), ({"whole_source_tokens": 10_000}, 12), ({"on_missing_position": "error"}, 2)],
)
def test_other_orders_keep_the_same_chunks(order, options, count):
    chunks = windows("voyage.txt", 1)[:12]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents([chunk.model_copy(update={"id": str(number)}) for number, chunk in enumerate(chunks)])
    expected, found = (
        {chunk.text for chunk in over(store, k=2, order=one, **options).get_context(QUESTION).kept}
        for one in ("source", order)
    )
    assert found == expected
    assert 2 <= len(found) <= count


def test_only_what_the_filter_lets_through_counts():
    mine, others = windows("report.txt", 1, tenant="a"), windows("report.txt", 2, tenant="b")
    mixed = [chunk for pair in zip(others, mine, strict=False) for chunk in pair]
    read = []

    def passes(document):
        read.append(document.metadata["tenant"])
        return document.metadata["tenant"] == "a"

    documents, told = found(over(store_of(mixed), search_kwargs={"filter": passes}))
    assert numbers(documents, mine) == sorted(numbers(documents, mine))
    assert told == []
    retriever = over(store_of(mixed))
    documents = retriever.invoke(QUESTION, filter=passes)
    assert numbers(documents, mine) == sorted(numbers(documents, mine))


class Shuffled(BaseDocumentCompressor):
    """A reranker that returns copies of the documents."""

    def compress_documents(self, documents, query, callbacks=None):
        del query, callbacks
        return [document.model_copy(deep=True) for document in reversed(documents)]


class Listed(BaseRetriever):
    """A retriever of a list, as that of BM25 is."""

    docs: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        del query, run_manager
        return self.docs[::-3]


@pytest.fixture
def listed_is_known(monkeypatch):
    monkeypatch.setattr(adapter, "_registered", {})
    register_store(Listed, ListedDocuments)


@pytest.mark.usefixtures("listed_is_known")
@pytest.mark.parametrize("kind", ["retriever", "reranked", "ensemble", "listed", "listed and reranked"])
def test_wrapped_retrievers_are_looked_through(kind):
    chunks = windows("voyage.txt", 1)
    by_store, by_list = store_of(chunks).as_retriever(search_kwargs={"k": 20}), Listed(docs=chunks)
    inner = {
        "retriever": by_store,
        "reranked": ContextualCompressionRetriever(base_compressor=Shuffled(), base_retriever=by_store),
        "ensemble": EnsembleRetriever(retrievers=[by_list, by_store], weights=[0.5, 0.5]),
        "listed": by_list,
        "listed and reranked": ContextualCompressionRetriever(base_compressor=Shuffled(), base_retriever=by_list),
    }[kind]
    documents, told = found(OrderPreservingRetriever(retriever=inner))
    assert len(documents) > 5
    assert numbers(documents, chunks) == sorted(numbers(documents, chunks))
    assert told == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner.with_config(tags=["mine"]),
        lambda inner: inner.with_retry(),
        lambda inner: inner.bind(k=12).with_config(run_name="mine").with_retry(),
        lambda inner: ContextualCompressionRetriever(base_retriever=inner.with_retry(), base_compressor=Shuffled()),
        lambda inner: EnsembleRetriever(retrievers=[inner.with_config(tags=["a"]), inner.with_retry()], weights=[1, 1]),
    ],
    ids=["with_config", "with_retry", "bind", "compressed", "ensemble"],
)
def test_bindings_and_retries_are_looked_through(wrap):
    chunks = windows("a.txt", 1)
    store = store_of(chunks)
    wrapped = wrap(store.as_retriever(search_kwargs={"k": 20}))
    documents, _ = found(OrderPreservingRetriever(retriever=wrapped))
    places = numbers(documents, chunks)
    assert len(places) >= 12
    assert places == sorted(places)
    for given in (wrapped, OrderPreservingRetriever(retriever=wrapped)):
        assert check_positions(given).sources[0].kind is PositionKind.STORE
    if not isinstance(wrapped, EnsembleRetriever):
        around = OrderPreservingRetriever(retriever=wrapped.with_config(tags=["b"]), neighbors=1)
        assert len(found(around)[0]) > len(places)


def test_a_bound_filter_is_that_of_the_search():
    red, blue = windows("a.txt", 1, tenant="red"), windows("a.txt", 1, tenant="blue")
    store = store_of([*red[:15], *blue, *red[15:]])
    inner = store.as_retriever(search_kwargs={"k": 9}).bind(filter=lambda one: one.metadata["tenant"] == "red")
    documents, _ = found(OrderPreservingRetriever(retriever=inner.with_retry(), neighbors=1))
    assert {document.metadata["tenant"] for document in documents} == {"red"}
    assert numbers(documents, red) == sorted(numbers(documents, red))
    assert check_positions(inner).chunks == len(red)


def test_wrappers_that_may_search_something_else_are_left_alone():
    one, other = (store_of(windows(name, 1)).as_retriever() for name in ("a.txt", "b.txt"))
    for wrapped in (
        one.with_fallbacks([other]),
        one.configurable_fields(search_kwargs=ConfigurableField(id="search")),
        OneSource(docs=[]).bind(user="ada"),
        EnsembleRetriever(retrievers=[one], weights=[1]).bind(user="ada"),
    ):
        for given in (wrapped, OrderPreservingRetriever(retriever=wrapped)):
            with pytest.raises(OptionError, match=r"^the chunks of \w+ cannot be listed; pass"):
                check_positions(given)


def test_a_store_that_cannot_be_asked_costs_the_order_and_not_the_answer():
    class Broken(InMemoryVectorStore):
        """Its documents can be searched and not listed."""

    class Adapter(StoreAdapter):
        """It fails."""

        def vectors(self, keys):
            return {}

        def in_sequence(self, keys):
            raise ConnectionError(f"no answer, api_key=sk-abcdefghijklmnopqrstuvwxyz012345 {'again ' * 100}")

    chunks = windows("voyage.txt", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "_registered", {})
        register_store(Broken, Adapter)
        documents, told = found(over(store_of(chunks, Broken)))
    assert numbers(documents, chunks) == by_rank(chunks)
    assert "the order of insertion into Broken cannot be read" in told[0]
    assert "ConnectionError: no answer" in told[0]
    assert "abcdefgh" not in told[0]
    assert len(told[0]) <= 200


@pytest.mark.filterwarnings("ignore:the chunks of a source are in the order in which they were added")
def test_each_filter_lists_its_own_chunks(monkeypatch):
    """Functions that are made for a question take each other's place in memory, and have the same repr."""
    chunks = windows("voyage.txt", 1)
    retriever = over(store_of(chunks), k=3)
    listed: list[int] = []
    list_chunks = LangChainInMemory.chunks

    def recorded(self, field="", sources=()):
        found = list(list_chunks(self, field, sources))
        listed.append(len(found))
        return found

    monkeypatch.setattr(LangChainInMemory, "chunks", recorded)
    first = {document.page_content for document in retriever.invoke(QUESTION)}
    wholes = [len(first), len(chunks)] * 20
    listed.clear()
    for whole in wholes:
        # Both filters let the same chunks be found.
        only = first if whole == len(first) else {document.page_content for document in chunks}
        retriever.invoke(QUESTION, filter=lambda document, only=only: document.page_content in only)
    assert listed == wholes

    def kept(document):
        return document.page_content in first

    for _ in range(3):
        retriever.invoke(QUESTION, filter=kept)
    assert listed == [*wholes, len(first)]


def test_tenants_of_a_docstore_are_kept_apart():
    mine, others = windows("handbook", 1, tenant="a"), windows("handbook", 2, tenant="b")
    docstore, store = InMemoryStore(), InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    for chunk in [*others[9:], *mine, *others[:9]]:
        name = chunk.page_content[:20]
        docstore.mset([(name, chunk)])
        store.add_documents([Document(chunk.page_content[:60], metadata={**chunk.metadata, "doc_id": name})])
    search = {"k": 40, "filter": lambda document: document.metadata["tenant"] == "a"}
    inner = MultiVectorRetriever(vectorstore=store, docstore=docstore, id_key="doc_id", search_kwargs=search)
    documents, _ = found(OrderPreservingRetriever(retriever=inner))
    assert numbers(documents, mine) == list(range(len(mine)))


def test_a_store_that_remembers_no_sequence_changes_nothing():
    class Forgetful(InMemoryVectorStore):
        """A store."""

    class Adapter(StoreAdapter):
        """It gives vectors alone."""

        def vectors(self, keys):
            return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "_registered", {})
        register_store(Forgetful, Adapter)
        chunks = windows("voyage.txt", 1)
        documents, told = found(over(store_of(chunks, Forgetful)))
    assert numbers(documents, chunks) == by_rank(chunks)
    assert "have no position" in told[0]
