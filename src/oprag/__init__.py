"""Order-preserving retrieval-augmented generation (OP-RAG, arXiv 2409.01666)."""

from oprag.arrange import arrange
from oprag.assembly import PAPER, Assembly
from oprag.build import build_context
from oprag.chunk import Chunk, Span
from oprag.context import Context
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
    SourceWarning,
    TokenizerError,
)
from oprag.position import Position, Rung
from oprag.select import Drop
from oprag.stitch import Passage
