"""LangChain's splitters and store for `benchmarks.inversions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from benchmarks.langchain_embeddings import LocalEmbeddings
from benchmarks.ordering import AS_SPLIT, DEFAULT, LOCATED, RANK, STAMPED, Answer, Ask, K
from oprag import Chunk, LocalEmbedder, locate_positions
from oprag.langchain import OrderPreservingRetriever, stamp_positions

__all__ = ["LangChain"]


class LangChain:
    """`RecursiveCharacterTextSplitter` and `InMemoryVectorStore`."""

    name = "LangChain"
    note = (
        "the default splitter leaves no position, so the order is that of the store there, and a `PositionWarning` "
        "says so. With a length function that counts tokens, LangChain looks for a chunk from the wrong place on: "
        "`start_index` is -1 where it finds none, or that of a later copy of the text."
    )

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
        """Split and store a document, and give a way to ask for each of the four conditions."""
        documents = self._splitters[splitter].create_documents([text], [{"source": source}])
        for number, document in enumerate(documents):
            document.id = f"{source}/{number}"
        ordinals = {document.id: number for number, document in enumerate(documents)}
        as_split, stamped, located = (
            self._store(documents),
            self._store(stamp_positions(documents)),
            self._store(documents),
        )
        _locate(located, documents, source, text)
        return {
            RANK: _asking(as_split.as_retriever(search_kwargs={"k": K}), ordinals),
            AS_SPLIT: _asking(_in_source_order(as_split), ordinals),
            STAMPED: _asking(_in_source_order(stamped), ordinals),
            LOCATED: _asking(_in_source_order(located), ordinals),
        }

    def _store(self, documents: list[Document]) -> InMemoryVectorStore:
        store = InMemoryVectorStore(self._embeddings)
        store.add_documents(documents)
        return store


def _locate(store: InMemoryVectorStore, documents: Sequence[Document], source: str, text: str) -> None:
    """Update the metadata of a store; its vectors stay."""
    chunks = [
        Chunk(document.page_content, number, metadata=document.metadata, id=document.id)
        for number, document in enumerate(documents)
    ]
    for found in locate_positions(chunks, {source: text}):
        entry = store.store[str(found.id)]
        store.store[str(found.id)] = {**entry, "metadata": {**entry["metadata"], **found.metadata}}


def _in_source_order(store: InMemoryVectorStore) -> OrderPreservingRetriever:
    # The same chunks as in rank order: no budget.
    return OrderPreservingRetriever(vectorstore=store, k=K, token_budget=None)


def _asking(retriever: BaseRetriever, ordinals: Mapping[str | None, int]) -> Ask:
    def ask(question: str) -> Answer:
        answer = [ordinals[document.id] for document in retriever.invoke(question)]
        if isinstance(retriever, OrderPreservingRetriever):
            return Answer(answer, retriever.get_context(question).sources)
        return Answer(answer)

    return ask
