"""In-memory retrievers that always return the same passages, so that only the work around them is timed."""

from __future__ import annotations

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from benchmarks.chunks import retrieved

__all__ = ["FoundDocuments", "FoundNodes", "documents", "nodes"]


class FoundDocuments(BaseRetriever):
    """A LangChain retriever that returns the same documents for every question."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        return list(self.documents)

    async def _aget_relevant_documents(
        self,
        query: str,  # noqa: ARG002
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return list(self.documents)


class FoundNodes(LlamaRetriever):
    """A LlamaIndex retriever that returns the same nodes for every query."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self._nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002
        return list(self._nodes)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:  # noqa: ARG002
        return list(self._nodes)


def documents(count: int) -> list[Document]:
    """Documents of one source, no two of them adjacent, in random order."""
    return [
        Document(chunk.text, metadata=dict(chunk.metadata), id=str(chunk.rank))
        for chunk in retrieved("offsets", count, among=8)
    ]


def nodes(count: int) -> list[NodeWithScore]:
    """The same as nodes, with the metadata of a LlamaIndex splitter."""
    return [
        NodeWithScore(
            node=TextNode(
                text=document.page_content,
                id_=f"node-{rank}",
                metadata={"file_name": "book.txt"},
                start_char_idx=document.metadata["start_index"],
                end_char_idx=document.metadata["start_index"] + len(document.page_content),
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="book")},
            ),
            score=1 - rank / count,
        )
        for rank, document in enumerate(documents(count))
    ]
