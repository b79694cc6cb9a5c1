"""What the LangChain examples share. Nothing of it is needed with a store of your own."""

from collections.abc import Sequence
from pydoc_data.topics import topics
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import LocalEmbedder
from oprag.langchain import stamp_positions
from parts.places import as_read

__all__ = ["LocalEmbeddings", "Reading", "reference_store"]


def reference_store() -> InMemoryVectorStore:
    """The Python language reference, which comes with Python, in chunks that are stamped with their positions."""
    reference = Document("\n\n".join(topics.values()), metadata={"source": "python-reference"})
    splitter = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=60, add_start_index=True)
    return InMemoryVectorStore.from_documents(stamp_positions(splitter.split_documents([reference])), LocalEmbeddings())


class Reading(BaseCallbackHandler):
    """Notes in which sequence a model reads the chunks that were retrieved for it."""

    def __init__(self) -> None:
        self.chunks: list[int] = []
        self._found: list[Document] = []

    def on_retriever_end(self, documents: Sequence[Document], **about: Any) -> None:  # noqa: ARG002
        """See what was retrieved."""
        self._found = list(documents)

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **about: Any) -> None:  # noqa: ARG002
        """Look for it in a prompt."""
        prompt = "\n".join(message.text for message in messages[0])
        self.chunks = as_read(prompt, ((one.metadata["chunk_index"], one.page_content) for one in self._found))


class LocalEmbeddings(Embeddings):
    """The embedder that needs no key and no download."""

    def __init__(self) -> None:
        self._embedder = LocalEmbedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed documents."""
        return self._embedder.embed_documents(texts).tolist()  # type: ignore[no-any-return]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self.embed_documents([text])[0]
