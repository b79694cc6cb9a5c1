"""LlamaIndex's splitter and index for `benchmarks.inversions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, Document

from benchmarks.llama_index_embedding import LocalEmbedding
from benchmarks.ordering import AS_SPLIT, DEFAULT, LOCATED, RANK, STAMPED, Answer, Ask, K
from oprag import LocalEmbedder
from oprag.llama_index import OrderPreservingRetriever, StampPositions

__all__ = ["LlamaIndex"]


class LlamaIndex:
    """`SentenceSplitter` and `VectorStoreIndex`."""

    name = "LlamaIndex"

    def __init__(self, embedder: LocalEmbedder) -> None:
        def tokens(text: str) -> list[int]:
            return tokenizer.encode(text, add_special_tokens=False).ids

        tokenizer = embedder.tokenizer
        self._embedding = LocalEmbedding(embedder)
        self._splitters = {
            DEFAULT: SentenceSplitter(tokenizer=tokens, id_func=_numbered),
            "256 tokens, no overlap": SentenceSplitter(
                chunk_size=256, chunk_overlap=0, tokenizer=tokens, id_func=_numbered
            ),
        }

    @property
    def splitters(self) -> Sequence[str]:
        """The names of the splitters."""
        return list(self._splitters)

    def index(self, splitter: str, source: str, text: str) -> Mapping[str, Ask]:
        """Split and store a document, and return a search function for each condition."""
        parser = self._splitters[splitter]
        nodes = parser.get_nodes_from_documents([Document(text=text, id_=source, metadata={"file_name": source})])
        ordinals = {node.node_id: number for number, node in enumerate(nodes)}
        as_split, stamped = (
            VectorStoreIndex(given, embed_model=self._embedding, transformations=[parser])
            for given in (nodes, StampPositions()(nodes))
        )
        return {
            RANK: _asking(as_split.as_retriever(similarity_top_k=K), ordinals),
            AS_SPLIT: _asking(_in_source_order(as_split), ordinals),
            STAMPED: _asking(_in_source_order(stamped), ordinals),
            LOCATED: _asking(_in_source_order(as_split, read_source={source: text}), ordinals),
        }


def _numbered(number: int, document: BaseNode) -> str:
    """An id that is the same in every run: the store sorts equal scores by id, and default ids are random."""
    return f"{document.node_id}/{number}"


def _in_source_order(index: VectorStoreIndex, read_source: Mapping[str, str] | None = None) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=K), read_source=read_source)


def _asking(retriever: BaseRetriever, ordinals: Mapping[str, int]) -> Ask:
    def ask(question: str) -> Answer:
        answer = [ordinals[scored.node.node_id] for scored in retriever.retrieve(question)]
        if isinstance(retriever, OrderPreservingRetriever):
            return Answer(answer, retriever.get_context(question).sources)
        return Answer(answer)

    return ask
