"""Order-preserving retrieval for LangChain: documents in, documents out."""

from typing import TYPE_CHECKING

from oprag.errors import MissingExtraError

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.langchain", "langchain") from error

from oprag.langchain.compressor import OrderPreservingCompressor
from oprag.langchain.documents import chunks_of, stamp_positions
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.lazy import loader

if TYPE_CHECKING:
    from oprag.langchain.chain import OrderPreservingChain
    from oprag.langchain.check import check_positions
    from oprag.langchain.embedder import as_embedder
    from oprag.langchain.index_retriever import DocumentIndexRetriever
    from oprag.langchain.write import write_positions

__all__ = [
    "DocumentIndexRetriever",
    "OrderPreservingChain",
    "OrderPreservingCompressor",
    "OrderPreservingRetriever",
    "as_embedder",
    "check_positions",
    "chunks_of",
    "stamp_positions",
    "write_positions",
]

# Loaded on first use: retrieving from a store needs none of them.
__getattr__ = loader(
    __name__,
    {
        "DocumentIndexRetriever": "oprag.langchain.index_retriever",
        "OrderPreservingChain": "oprag.langchain.chain",
        "as_embedder": "oprag.langchain.embedder",
        "check_positions": "oprag.langchain.check",
        "write_positions": "oprag.langchain.write",
    },
)
