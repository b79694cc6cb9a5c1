"""What a reader's application has, for the examples of the documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM

from tests.adapters.langchain.agents import ScriptedModel

__all__ = ["ROOT", "python_blocks", "readers_names", "text_blocks"]

ROOT = Path(__file__).parent.parent


class LastFirst(BaseDocumentCompressor):
    """A reranker that keeps the last two documents, the last one first."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return list(documents)[:-3:-1]


def python_blocks(path: Path) -> list[str]:
    """The examples of a document; those of the examples' files, which run by themselves, are marked otherwise."""
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def text_blocks(path: Path) -> list[str]:
    """What a document says is printed; long lines are wrapped there, and continue with two spaces."""
    blocks = re.findall(r"```text\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    return [re.sub(r"\n {2}(?=\S)", " ", text) for text in blocks]


def readers_names() -> dict[str, Any]:
    """The names that the examples take for granted."""
    book = "The captain is Ada Brand. She left port in mid-May. She came back with salt."
    parts = [book[start : start + 26] for start in range(0, len(book), 26)]
    documents = [Document(part, metadata={"source": "book.txt"}) for part in parts]
    store = InMemoryVectorStore.from_documents(
        [
            Document(part, metadata={"source": "book.txt", "start_index": index * 26})
            for index, part in enumerate(parts)
        ],
        DeterministicFakeEmbedding(size=8),
    )
    index: Any = VectorStoreIndex.from_documents([LlamaDocument(text=book)], embed_model=MockEmbedding(8))
    index.as_query_engine = lambda **options: type(index).as_query_engine(index, llm=MockLLM(), **options)
    return {
        "book": book,
        "documents": documents,
        "stored": [document.model_copy(update={"id": str(number)}) for number, document in enumerate(documents)],
        "store": store,
        "documents_in_order": [
            Document(part, metadata={"source": "book.txt", "start_index": index * 26})
            for index, part in enumerate(parts)
        ],
        "embeddings": store.embeddings,
        "your_retriever": store.as_retriever(),
        "your_reranker": LastFirst(),
        "index": index,
        "llm": FakeListChatModel(responses=["Ada Brand."]),
        # It searches twice, and then answers.
        "model": ScriptedModel(turns=[["captain"], ["salt"], "The captain is Ada Brand [3, 7]."]),
        "llama_llm": MockLLM(),
    }
