"""Order-preserving retrieval-augmented generation (OP-RAG, arXiv 2409.01666)."""

from typing import TYPE_CHECKING

from oprag._version import __version__
from oprag.arrange import arrange
from oprag.assembly import OP_RAG, ContextOptions
from oprag.build import build_context
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.drop import Drop
from oprag.errors import (
    BudgetError,
    CacheError,
    CacheWarning,
    ChunkError,
    DataError,
    EmbeddingError,
    ExperimentError,
    IndexFileError,
    IndexFileWarning,
    InputFileError,
    LikelihoodError,
    MeasuringError,
    MissingExtraError,
    MissingPositionError,
    MissingSourceError,
    ModelError,
    ModelWarning,
    OpragError,
    OpragWarning,
    OptionError,
    PositionWarning,
    PromptError,
    QueryError,
    ResultsFileError,
    RetrievalWarning,
    SerializationWarning,
    SourceReadError,
    SourceTooLongError,
    SourceWarning,
    TokenizerError,
    UntrustedExperimentError,
)
from oprag.lazy import loader, shown_in
from oprag.place import SourceReport
from oprag.rung import Position, PositionKind
from oprag.stitch import Passage
from oprag.tokens import approximate_tokens

__all__ = [
    "OP_RAG",
    "BudgetError",
    "CacheError",
    "CacheWarning",
    "Chunk",
    "ChunkError",
    "Context",
    "ContextOptions",
    "DataError",
    "DocumentIndex",
    "Drop",
    "DualEncoder",
    "Embedder",
    "EmbeddingError",
    "ExperimentError",
    "IndexFileError",
    "IndexFileWarning",
    "InputFileError",
    "LikelihoodError",
    "LocalEmbedder",
    "Located",
    "MeasuringError",
    "MissingExtraError",
    "MissingPositionError",
    "MissingSourceError",
    "ModelError",
    "ModelWarning",
    "OpragError",
    "OpragWarning",
    "OptionError",
    "Passage",
    "Position",
    "PositionKind",
    "PositionWarning",
    "PromptError",
    "QueryError",
    "ResultsFileError",
    "RetrievalWarning",
    "SerializationWarning",
    "SourceReadError",
    "SourceReport",
    "SourceTooLongError",
    "SourceWarning",
    "Span",
    "TokenWindow",
    "TokenizerError",
    "UntrustedExperimentError",
    "VectorCache",
    "__version__",
    "approximate_tokens",
    "arrange",
    "build_context",
    "locate_positions",
    "neighbors_among",
    "split_recursive",
    "split_tokens",
]

# Loaded when asked for: an application that only retrieves needs neither NumPy nor these.
_LOADED_LATER = {
    "DocumentIndex": "oprag.retrieval.index",
    "DualEncoder": "oprag.embed",
    "Embedder": "oprag.embed",
    "LocalEmbedder": "oprag.local",
    "Located": "oprag.locate",
    "TokenWindow": "oprag.retrieval.split",
    "VectorCache": "oprag.vectors.cache",
    "locate_positions": "oprag.locate",
    "neighbors_among": "oprag.around",
    "split_recursive": "oprag.retrieval.recursive",
    "split_tokens": "oprag.retrieval.split",
}

if TYPE_CHECKING:
    from oprag.around import neighbors_among
    from oprag.embed import DualEncoder, Embedder
    from oprag.local import LocalEmbedder
    from oprag.locate import Located, locate_positions
    from oprag.retrieval.index import DocumentIndex
    from oprag.retrieval.recursive import split_recursive
    from oprag.retrieval.split import TokenWindow, split_tokens
    from oprag.vectors.cache import VectorCache


for _name in __all__:
    if _name not in _LOADED_LATER:
        shown_in(__name__, globals()[_name])
del _name

__getattr__ = loader(__name__, _LOADED_LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
