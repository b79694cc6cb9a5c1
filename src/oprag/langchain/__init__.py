"""Order-preserving retrieval for LangChain: documents in, documents out."""

from oprag.errors import MissingExtraError

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise MissingExtraError("oprag.langchain", "langchain") from error

from oprag.langchain.compressor import OrderPreservingCompressor
from oprag.langchain.documents import chunks_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.stamp import stamp_positions

__all__ = ["OrderPreservingCompressor", "OrderPreservingRetriever", "chunks_of", "stamp_positions"]
