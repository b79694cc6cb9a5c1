"""LangChain's splitters and stores for `benchmarks.inversions`; needs `langchain-qdrant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from benchmarks.langchain_embeddings import LocalEmbeddings
from benchmarks.ordering import AS_SPLIT, BY_TEXT, DEFAULT, LOCATED, RANK, STAMPED, Answer, Ask, K
from oprag import LocalEmbedder
from oprag.langchain import OrderPreservingRetriever, stamp_positions, write_positions

__all__ = ["LangChain"]


class LangChain:
    """`RecursiveCharacterTextSplitter`, and `InMemoryVectorStore` or `QdrantVectorStore`."""

    name = "LangChain"

    def __init__(self, embedder: LocalEmbedder) -> None:
        self._embeddings = LocalEmbeddings(embedder)
        self._splitters: dict[str, TextSplitter] = {
            DEFAULT: RecursiveCharacterTextSplitter(),
            "`add_start_index=True`": RecursiveCharacterTextSplitter(add_start_index=True),
            "256 tokens, 32 overlap, `add_start_index=True`": RecursiveCharacterTextSplitter(
                chunk_size=256, chunk_overlap=32, length_function=embedder.count_tokens, add_start_index=True
            ),
        }

    @property
    def splitters(self) -> Sequence[str]:
        """The names of the splitters."""
        return list(self._splitters)

    def index(self, splitter: str, source: str, text: str) -> Mapping[str, Ask]:
        """Split and store a document, and return a search function for each condition."""
        documents = self._splitters[splitter].create_documents([text], [{"source": source}])
        for number, document in enumerate(documents):
            document.id = str(uuid5(NAMESPACE_URL, f"{source}/{number}"))
        ordinals: dict[str, list[int]] = {}
        for number, document in enumerate(documents):
            ordinals.setdefault(document.page_content, []).append(number)
        as_split, stamped = self._in_memory(documents), self._in_memory(stamp_positions(documents))
        without_offsets = [
            Document(document.page_content, id=document.id, metadata={"source": source}) for document in documents
        ]
        located = self._in_memory(without_offsets)
        write_positions(located, read_source={source: text})
        by_text = OrderPreservingRetriever(
            vectorstore=self._in_qdrant(without_offsets), k=K, token_budget=None, read_source={source: text}
        )
        return {
            RANK: _asking(as_split.as_retriever(search_kwargs={"k": K}), ordinals),
            AS_SPLIT: _asking(_in_source_order(as_split), ordinals),
            STAMPED: _asking(_in_source_order(stamped), ordinals),
            LOCATED: _asking(_in_source_order(located), ordinals),
            BY_TEXT: _asking(by_text, ordinals),
        }

    def _in_memory(self, documents: list[Document]) -> InMemoryVectorStore:
        store = InMemoryVectorStore(self._embeddings)
        store.add_documents(documents)
        return store

    def _in_qdrant(self, documents: list[Document]) -> Any:
        # Not among the requirements of the other benchmarks.
        from langchain_qdrant import QdrantVectorStore

        return QdrantVectorStore.from_documents(
            documents,
            self._embeddings,
            ids=[str(document.id) for document in documents],
            location=":memory:",
            collection_name="chunks",
        )


def _in_source_order(store: InMemoryVectorStore) -> OrderPreservingRetriever:
    # The same chunks as in rank order: no budget.
    return OrderPreservingRetriever(vectorstore=store, k=K, token_budget=None)


def _asking(retriever: BaseRetriever, ordinals: Mapping[str, Sequence[int]]) -> Ask:
    def ask(question: str) -> Answer:
        answer = _places(retriever.invoke(question), ordinals)
        if isinstance(retriever, OrderPreservingRetriever):
            return Answer(answer, retriever.get_context(question).sources)
        return Answer(answer)

    return ask


def _places(documents: Sequence[Document], ordinals: Mapping[str, Sequence[int]]) -> list[int]:
    """The positions of documents in their source; of several chunks with equal text, the next one is taken."""
    places: list[int] = []
    for document in documents:
        left = [place for place in ordinals[document.page_content] if place not in places]
        last = places[-1] if places else -1
        places.append(next((place for place in left if place > last), left[0]))
    return places
