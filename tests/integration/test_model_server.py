"""A real chat model reads what the retriever gives, through chains that we did not write."""

import pytest
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.prompts import ChatPromptTemplate

from oprag.langchain import OrderPreservingRetriever
from tests.integration.clients import chat_openai

pytestmark = pytest.mark.integration

QUESTION = "What does the break statement do?"


@pytest.fixture
def model(model_server, wire):
    return chat_openai(model_server, wire)


@pytest.fixture(scope="module")
def retriever(store):
    return OrderPreservingRetriever(vectorstore=store, k=5, token_budget=400)


def in_order(prompt, retriever):
    """Whether the chunks stand in the prompt in the order of the source."""
    documents = sorted(retriever.invoke(QUESTION), key=lambda document: document.metadata["chunk_index"])
    places = [prompt.index(document.page_content) for document in documents]
    return len(places) > 2 and places == sorted(places)


def test_retrieval_qa(model, retriever, wire):
    chain = RetrievalQA.from_chain_type(model, chain_type="stuff", retriever=retriever, return_source_documents=True)
    result = chain.invoke({"query": QUESTION})
    assert result["result"].strip()
    assert in_order(wire.exchanges[0].text, retriever)


def test_retrieval_chain_streams(model, retriever, wire):
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from this text:\n{context}"), ("human", "{input}")])
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    pieces = list(chain.stream({"input": QUESTION}))
    assert len([piece for piece in pieces if "answer" in piece]) > 1
    assert in_order(wire.exchanges[0].text, retriever)


async def test_retrieval_chain_async(model, retriever):
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from this text:\n{context}"), ("human", "{input}")])
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    result = await chain.ainvoke({"input": QUESTION})
    assert result["answer"].strip()
    assert [document.metadata["chunk_index"] for document in result["context"]] == sorted(
        document.metadata["chunk_index"] for document in result["context"]
    )
