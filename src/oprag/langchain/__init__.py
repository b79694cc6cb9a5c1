"""Order-preserving retrieval for LangChain: documents in, documents out."""

from typing import TYPE_CHECKING

from oprag.errors import MissingExtraError

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.langchain", "langchain") from error

from oprag.langchain.compressor import OrderPreservingCompressor
from oprag.langchain.documents import chunks_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.stamp import stamp_positions
from oprag.lazy import loader

if TYPE_CHECKING:
    from oprag.langchain.chain import OrderPreservingChain
    from oprag.langchain.embedder import as_embedder
    from oprag.langchain.index import DocumentIndexRetriever

__all__ = [
    "DocumentIndexRetriever",
    "OrderPreservingChain",
    "OrderPreservingCompressor",
    "OrderPreservingRetriever",
    "as_embedder",
    "chunks_of",
    "stamp_positions",
]

# Who only retrieves from a store needs none of these.
__getattr__ = loader(
    __name__,
    {
        "DocumentIndexRetriever": "oprag.langchain.index",
        "OrderPreservingChain": "oprag.langchain.chain",
        "as_embedder": "oprag.langchain.embedder",
    },
)
