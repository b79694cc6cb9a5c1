"""Real documents, real vectors, real stores and a real model, none of which need a network."""

from pydoc_data.topics import topics

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from oprag import LocalEmbedder, split_tokens
from oprag.langchain import stamp_positions
from tests.integration.model_server import serve
from tests.integration.wire import Wire


class LocalEmbeddings(Embeddings):
    """The embedded default, as LangChain's stores want it."""

    def __init__(self):
        self.embedder = LocalEmbedder()

    def embed_documents(self, texts):
        return self.embedder.embed_documents(texts).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture(scope="session")
def embeddings():
    return LocalEmbeddings()


@pytest.fixture(scope="session")
def short_chunks(embeddings, reference):
    """1,000 chunks of the Python language reference, half as long as usual, for a model that reads slowly."""
    windows = split_tokens(reference, embeddings.embedder.tokenizer, chunk_size=64)[:1_000]
    return [
        Document(window.text, metadata={"source": "python-reference", "start_index": window.start})
        for window in windows
    ]


@pytest.fixture(scope="session")
def reference():
    """The whole text that the chunks are windows of."""
    return "\n\n".join(topics.values())


@pytest.fixture(scope="session")
def store(short_chunks, embeddings):
    """The short chunks, stamped, in a vector store."""
    return InMemoryVectorStore.from_documents(stamp_positions(short_chunks), embeddings)


@pytest.fixture(scope="session")
def model_server():
    """The address of an OpenAI-compatible server with a small chat model."""
    server = serve()
    # It stops when nothing holds it any more.
    yield server.address
    del server


@pytest.fixture
def wire():
    """A client that keeps what it and the model server say to each other."""
    wire = Wire()
    yield wire
    wire.client.close()
