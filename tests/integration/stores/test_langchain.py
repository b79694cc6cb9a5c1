"""The same chunks with the same vectors in each of LangChain's stores give the same context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from oprag import PositionKind
from oprag.langchain import OrderPreservingRetriever
from oprag.stores.adapter import adapter_of
from tests.integration.stores.checks import ask, check, kinds_of_values, numbers, tenants
from tests.integration.stores.conftest import Places
from tests.integration.stores.corpus import FORMS, OPTIONS, TENANTS, Corpus, identify
from tests.integration.stores.known import KnownEmbeddings
from tests.integration.stores.langchain_stores import KINDS, Kind

pytestmark = pytest.mark.integration

EACH_WAY = pytest.mark.parametrize(
    ("case", "way"),
    [pytest.param(kind, way, id=f"{kind}-{way}") for kind in KINDS for way in kind.ways],
    indirect=["case"],
)


class Case(NamedTuple):
    """A store that holds all chunks of two tenants."""

    kind: Kind
    store: VectorStore
    embeddings: KnownEmbeddings

    def retriever(self, **options: Any) -> OrderPreservingRetriever:
        given = {"vectorstore": self.store, "search_kwargs": dict(self.kind.search), **OPTIONS}
        return OrderPreservingRetriever(**given | options)


@pytest.fixture(scope="session")
def cases(corpus: Corpus, places: Places) -> Iterator[Callable[[Kind], Case]]:
    """A case of each kind, made when it is asked for."""
    with ExitStack() as stack:

        @cache
        def make(kind: Kind) -> Case:
            embeddings = KnownEmbeddings(corpus)
            documents = [
                Document(
                    text,
                    id=identify(kind.name, tenant, number),
                    metadata=kind.puts(corpus.metadata(number, tenant)),
                )
                for number, text in enumerate(corpus.texts)
                for tenant in TENANTS
            ]
            place = stack.enter_context(places(kind.name))
            return Case(kind, kind.make(documents, embeddings, place), embeddings)

        yield make


@pytest.fixture
def case(request: pytest.FixtureRequest, cases: Callable[[Kind], Case]) -> Case:
    case = cases(request.param)
    case.embeddings.forget()
    return case


@EACH_WAY
def test_what_is_kept_and_dropped_is_what_numpy_says(case: Case, way: str, corpus: Corpus):
    retriever = case.retriever()
    for question, tenant in zip(corpus.questions, (*TENANTS, "red"), strict=True):
        only = case.kind.only(tenant)
        check(ask(way, retriever, question, filter=only), corpus, question, tenant)
        always = case.retriever(search_kwargs={**case.kind.search, "filter": only})
        check(ask(way, always, question), corpus, question, tenant)


@EACH_WAY
def test_a_question_is_embedded_once_and_a_chunk_never(case: Case, way: str, corpus: Corpus):
    retriever, (question, *_), only = case.retriever(), corpus.questions, case.kind.only("red")
    first = ask(way, retriever, question, filter=only)
    assert case.embeddings.embedded == (1, 0)
    case.embeddings.forget()
    again = ask(way, retriever, question, filter=only)
    assert numbers(again) == numbers(first)
    assert case.embeddings.embedded == (0, 0)


@EACH_WAY
def test_ids_and_metadata_after_the_round_trip(case: Case, way: str, corpus: Corpus):
    question, *_ = corpus.questions
    adapter = adapter_of(case.store)
    assert adapter is not None
    for chunk in ask(way, case.retriever(), question, filter=case.kind.only("blue")).kept:
        number = int(chunk.metadata["chunk_index"])
        put = case.kind.puts(corpus.metadata(number, "blue"))
        got = dict(chunk.metadata)
        key = adapter.key(chunk)
        if case.kind.name.startswith("qdrant"):
            # It writes its own id and the name of the collection beside them.
            assert got.pop("_id") == key
            assert got.pop("_collection_name") == case.kind.name
        # LanceDB gives no id: what is found is known by its text.
        known_by_text = case.kind.name.startswith("lancedb")
        assert key == (chunk.text if known_by_text else identify(case.kind.name, "blue", number))
        wanted = case.kind.gives(put)
        assert kinds_of_values(got) == kinds_of_values(wanted)
        # Chroma rounds the last digit of a float.
        assert got.pop("weight") == pytest.approx(wanted.pop("weight"), rel=1e-14, abs=0)
        assert got == wanted


@EACH_WAY
@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
def test_a_wrapped_retriever_reads_the_vectors_of_its_store(case: Case, way: str, search_type: str, corpus: Corpus):
    question, *_ = corpus.questions
    keywords = {"k": 128, **case.kind.search, "filter": case.kind.only("red")}
    if search_type == "mmr":
        keywords |= {"k": 40, "fetch_k": case.kind.search.get("fetch_k", 40)}
    inner = case.store.as_retriever(search_type=search_type, search_kwargs=keywords)
    retriever = OrderPreservingRetriever(retriever=inner, token_budget=None, **OPTIONS | {"k": 20})
    context = ask(way, retriever, question)
    assert tenants(context) == {"red"}
    assert numbers(context) == sorted(numbers(context))
    # The wrapped retriever embeds the question by itself.
    assert case.embeddings.questions.count(question) == 2
    unknown = len(context.kept) + len(context.dropped) if gives_no_ids(case, search_type) else 0
    assert len(case.embeddings.chunks) == unknown
    if search_type == "similarity":
        assert numbers(context) == sorted(first_of(corpus, question, 20))


def gives_no_ids(case: Case, search_type: str) -> bool:
    """Whether chunks cannot be found again in the store, so that they are embedded once."""
    return case.kind.name == "pinecone" and search_type == "mmr"


def first_of(corpus: Corpus, question: str, k: int) -> list[int]:
    """The first k that no threshold drops."""
    expected = corpus.expected(question)
    return [number for number in expected.ranked if expected.reasons.get(number) in (None, "k")][:k]


@EACH_WAY
def test_mmr(case: Case, way: str, corpus: Corpus):
    question, *_ = corpus.questions
    retriever = case.retriever(search_type="mmr", k=20, max_candidates=40)
    context = ask(way, retriever, question, filter=case.kind.only("red"))
    assert tenants(context) == {"red"}
    assert numbers(context) == sorted(numbers(context))
    assert len(context.kept) + len(context.dropped) == 40
    for chunk in context.kept:
        expected = corpus.cosine(question, int(chunk.metadata["chunk_index"]))
        assert chunk.similarity == pytest.approx(expected, abs=1e-3)
    # The search embeds the question by itself.
    assert len(case.embeddings.chunks) == (40 if gives_no_ids(case, "mmr") else 0)
    case.embeddings.forget()
    assert numbers(ask(way, retriever, question, filter=case.kind.only("red"))) == numbers(context)
    assert case.embeddings.chunks == []


ONE_EACH = [kind for kind in KINDS if kind.alone]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ONE_EACH, ids=str)
def test_positions_of_any_form_order_right(kind: Kind, form: str, corpus: Corpus, places: Places):
    question, *_ = corpus.questions
    asked = corpus.expected(question).ranked[:24]
    embeddings, name = KnownEmbeddings(corpus), f"{kind}_{form}"
    # The best comes last in the source, so that nothing but the position can bring them into order.
    documents = [
        Document(
            corpus.texts[number],
            id=identify(name, "red", number),
            metadata={"source": "python-reference", **FORMS[form](place)},
        )
        for place, number in zip(reversed(range(len(asked))), asked, strict=True)
    ]
    with places(name) as somewhere:
        store = kind.make(documents, embeddings, somewhere)
        context = OrderPreservingRetriever(vectorstore=store, k=len(asked), similarity_threshold=-1).get_context(
            question
        )
    assert [chunk.text for chunk in context.kept] == [corpus.texts[number] for number in reversed(asked)]
    (report,) = context.sources
    kinds = {"offset": PositionKind.OFFSET, "page": PositionKind.PAGE_OFFSET}
    assert (report.kind, report.missing) == (kinds.get(form, PositionKind.STAMPED), 0)
