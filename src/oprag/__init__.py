"""Order-preserving retrieval-augmented generation (OP-RAG, arXiv 2409.01666)."""

from types import FunctionType

from oprag._version import __version__
from oprag.arrange import arrange
from oprag.assembly import PAPER, Assembly
from oprag.build import build_context
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.embed import DualEncoder, Embedder
from oprag.errors import (
    BudgetError,
    ChunkError,
    EmbeddingError,
    IndexFileError,
    InputFileError,
    MissingExtraError,
    MissingPositionError,
    MissingSourceError,
    OpragError,
    OpragWarning,
    OptionError,
    PositionWarning,
    QueryError,
    RetrievalWarning,
    SerializationWarning,
    SourceWarning,
    TokenizerError,
)
from oprag.index import DocumentIndex
from oprag.local import LocalEmbedder
from oprag.locate import Located, locate_positions
from oprag.place import SourceReport
from oprag.position import Position, Rung
from oprag.select import Drop
from oprag.split import TokenWindow, split_tokens
from oprag.stitch import Passage
from oprag.tokens import approximate_tokens

__all__ = [
    "PAPER",
    "Assembly",
    "BudgetError",
    "Chunk",
    "ChunkError",
    "Context",
    "DocumentIndex",
    "Drop",
    "DualEncoder",
    "Embedder",
    "EmbeddingError",
    "IndexFileError",
    "InputFileError",
    "LocalEmbedder",
    "Located",
    "MissingExtraError",
    "MissingPositionError",
    "MissingSourceError",
    "OpragError",
    "OpragWarning",
    "OptionError",
    "Passage",
    "Position",
    "PositionWarning",
    "QueryError",
    "RetrievalWarning",
    "Rung",
    "SerializationWarning",
    "SourceReport",
    "SourceWarning",
    "Span",
    "TokenWindow",
    "TokenizerError",
    "__version__",
    "approximate_tokens",
    "arrange",
    "build_context",
    "locate_positions",
    "split_tokens",
]

# Users see one place in tracebacks and reprs, whatever module a name lives in.
for _public in [globals()[name] for name in __all__]:
    if isinstance(_public, type | FunctionType):
        _public.__module__ = "oprag"
del _public
