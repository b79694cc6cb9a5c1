"""Order-preserving retrieval for LlamaIndex: nodes in, nodes out."""

from oprag.errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.llama_index", "llama-index") from error

from oprag.llama_index.nodes import chunks_of
from oprag.llama_index.postprocessor import OrderPreservingPostprocessor
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.stamp import StampPositions

__all__ = ["OrderPreservingPostprocessor", "OrderPreservingRetriever", "StampPositions", "chunks_of"]
