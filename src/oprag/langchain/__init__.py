"""Order-preserving retrieval for LangChain: documents in, documents out."""

from typing import TYPE_CHECKING

from oprag.errors import MissingExtraError

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.langchain", "langchain") from error

from oprag._internal.lazy import loader
from oprag.langchain.documents import chunks_of, stamp_positions
from oprag.langchain.retriever import OrderPreservingRetriever

if TYPE_CHECKING:
    from oprag.langchain.chain import OrderPreservingChain
    from oprag.langchain.cited_messages import cited_message
    from oprag.langchain.compressor import OrderPreservingCompressor
    from oprag.langchain.embeddings import LocalEmbeddings, as_embedder
    from oprag.langchain.index_retriever import DocumentIndexRetriever
    from oprag.langchain.middleware import OrderPreservingMiddleware, WorkingContextState
    from oprag.langchain.positions import check_positions, write_positions
    from oprag.langchain.search_results import gather_search_results, lay_out_messages, working_context_of
    from oprag.langchain.tools import create_reading_tools, create_search_tool

__all__ = [
    "DocumentIndexRetriever",
    "LocalEmbeddings",
    "OrderPreservingChain",
    "OrderPreservingCompressor",
    "OrderPreservingMiddleware",
    "OrderPreservingRetriever",
    "WorkingContextState",
    "as_embedder",
    "check_positions",
    "chunks_of",
    "cited_message",
    "create_reading_tools",
    "create_search_tool",
    "gather_search_results",
    "lay_out_messages",
    "stamp_positions",
    "working_context_of",
    "write_positions",
]

# Imported on first use: plain retrieval does not need them.
__getattr__ = loader(
    __name__,
    {
        "DocumentIndexRetriever": "oprag.langchain.index_retriever",
        "LocalEmbeddings": "oprag.langchain.embeddings",
        "OrderPreservingChain": "oprag.langchain.chain",
        "OrderPreservingCompressor": "oprag.langchain.compressor",
        "OrderPreservingMiddleware": "oprag.langchain.middleware",
        "WorkingContextState": "oprag.langchain.middleware",
        "as_embedder": "oprag.langchain.embeddings",
        "check_positions": "oprag.langchain.positions",
        "cited_message": "oprag.langchain.cited_messages",
        "create_reading_tools": "oprag.langchain.tools",
        "create_search_tool": "oprag.langchain.tools",
        "gather_search_results": "oprag.langchain.search_results",
        "lay_out_messages": "oprag.langchain.search_results",
        "working_context_of": "oprag.langchain.search_results",
        "write_positions": "oprag.langchain.positions",
    },
)
