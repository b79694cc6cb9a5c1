"""Order-preserving retrieval for LlamaIndex: nodes in, nodes out."""

from typing import TYPE_CHECKING

from oprag.errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.llama_index", "llama-index") from error

from oprag._internal.lazy import loader
from oprag.llama_index.nodes import chunks_of
from oprag.llama_index.postprocessor import OrderPreservingPostprocessor
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.stamp_positions import StampPositions

if TYPE_CHECKING:
    from oprag.llama_index.cited_messages import cited_message
    from oprag.llama_index.embeddings import LocalEmbedding, as_embedder
    from oprag.llama_index.function_agent import OrderPreservingFunctionAgent
    from oprag.llama_index.positions import check_positions, write_positions
    from oprag.llama_index.query_engine import OrderPreservingQueryEngine
    from oprag.llama_index.search_results import working_context_of
    from oprag.llama_index.tools import create_reading_tools, create_search_tool

__all__ = [
    "LocalEmbedding",
    "OrderPreservingFunctionAgent",
    "OrderPreservingPostprocessor",
    "OrderPreservingQueryEngine",
    "OrderPreservingRetriever",
    "StampPositions",
    "as_embedder",
    "check_positions",
    "chunks_of",
    "cited_message",
    "create_reading_tools",
    "create_search_tool",
    "working_context_of",
    "write_positions",
]

# Imported on first use: plain retrieval needs neither methods nor agents.
__getattr__ = loader(
    __name__,
    {
        "LocalEmbedding": "oprag.llama_index.embeddings",
        "OrderPreservingFunctionAgent": "oprag.llama_index.function_agent",
        "OrderPreservingQueryEngine": "oprag.llama_index.query_engine",
        "as_embedder": "oprag.llama_index.embeddings",
        "check_positions": "oprag.llama_index.positions",
        "cited_message": "oprag.llama_index.cited_messages",
        "create_reading_tools": "oprag.llama_index.tools",
        "create_search_tool": "oprag.llama_index.tools",
        "working_context_of": "oprag.llama_index.search_results",
        "write_positions": "oprag.llama_index.positions",
    },
)
