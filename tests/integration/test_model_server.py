"""A real chat model reads what the retriever gives, through chains that we did not write."""

import pytest
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.langchain import OrderPreservingRetriever, stamp_positions

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("default")]

QUESTION = "What does the break statement do?"


class Recorder(BaseCallbackHandler):
    """Keeps the prompts that the model was sent."""

    def __init__(self):
        self.prompts = []

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.prompts += ["\n".join(str(message.content) for message in batch) for batch in messages]


@pytest.fixture(scope="module")
def model(model_server):
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        base_url=f"{model_server}/v1", api_key="-", model="smollm2", temperature=0, max_completion_tokens=48
    )


@pytest.fixture(scope="module")
def retriever(chunks, embeddings):
    store = InMemoryVectorStore.from_documents(stamp_positions(chunks), embeddings)
    return OrderPreservingRetriever(vectorstore=store, k=5, token_budget=700)


def in_order(prompt, retriever):
    """Whether the chunks stand in the prompt in the order of the source."""
    documents = sorted(retriever.invoke(QUESTION), key=lambda document: document.metadata["chunk_index"])
    places = [prompt.index(document.page_content) for document in documents]
    return len(places) > 2 and places == sorted(places)


def test_retrieval_qa(model, retriever):
    recorder = Recorder()
    chain = RetrievalQA.from_chain_type(model, chain_type="stuff", retriever=retriever, return_source_documents=True)
    result = chain.invoke({"query": QUESTION}, config={"callbacks": [recorder]})
    assert result["result"].strip()
    assert in_order(recorder.prompts[0], retriever)


def test_retrieval_chain_streams(model, retriever):
    recorder = Recorder()
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from this text:\n{context}"), ("human", "{input}")])
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    pieces = list(chain.stream({"input": QUESTION}, config={"callbacks": [recorder]}))
    assert len([piece for piece in pieces if "answer" in piece]) > 1
    assert in_order(recorder.prompts[0], retriever)


async def test_retrieval_chain_async(model, retriever):
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from this text:\n{context}"), ("human", "{input}")])
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    result = await chain.ainvoke({"input": QUESTION})
    assert result["answer"].strip()
    assert [document.metadata["chunk_index"] for document in result["context"]] == sorted(
        document.metadata["chunk_index"] for document in result["context"]
    )
