"""Order-preserving retrieval-augmented generation (OP-RAG, arXiv 2409.01666)."""

from typing import TYPE_CHECKING

from oprag._internal.lazy import loader, set_public_module
from oprag._internal.tokens import approximate_tokens
from oprag._version import __version__
from oprag.chunk import Chunk, Drop, Passage, Place, Position, PositionKind, Span, Uncertain
from oprag.context import Context, build_context
from oprag.options import OP_RAG, ContextOptions
from oprag.pipeline.order import arrange
from oprag.positions.retrieved import SourceReport

__all__ = [
    "OP_RAG",
    "Chunk",
    "Cited",
    "Context",
    "ContextOptions",
    "Delta",
    "DocumentIndex",
    "Drop",
    "DualEncoder",
    "Embedder",
    "LocalEmbedder",
    "Located",
    "Passage",
    "Place",
    "Position",
    "PositionCheck",
    "PositionKind",
    "SourceCheck",
    "SourceFolder",
    "SourceReport",
    "Span",
    "TokenWindow",
    "Uncertain",
    "VectorCache",
    "WorkingContext",
    "WrittenPositions",
    "WrittenSource",
    "__version__",
    "approximate_tokens",
    "arrange",
    "build_context",
    "locate_positions",
    "neighbors_among",
    "split_recursive",
    "split_tokens",
]

# Imported on first access: an application that only retrieves needs neither these modules nor NumPy.
_LOADED_LATER = {
    "Cited": "oprag.agents.cited",
    "Delta": "oprag.agents.working_context",
    "DocumentIndex": "oprag.index.document_index",
    "DualEncoder": "oprag.embedding.embedder",
    "Embedder": "oprag.embedding.embedder",
    "LocalEmbedder": "oprag.embedding.static",
    "Located": "oprag.positions.locate",
    "PositionCheck": "oprag.positions.check_report",
    "SourceCheck": "oprag.positions.check_report",
    "SourceFolder": "oprag.positions.source_reader",
    "TokenWindow": "oprag.index.splitting",
    "VectorCache": "oprag.embedding.vector_cache",
    "WorkingContext": "oprag.agents.working_context",
    "WrittenPositions": "oprag.stores.positions",
    "WrittenSource": "oprag.stores.positions",
    "locate_positions": "oprag.positions.locate",
    "neighbors_among": "oprag.pipeline.neighbors",
    "split_recursive": "oprag.index.splitting",
    "split_tokens": "oprag.index.splitting",
}

if TYPE_CHECKING:
    from oprag.agents.cited import Cited
    from oprag.agents.working_context import Delta, WorkingContext
    from oprag.embedding.embedder import DualEncoder, Embedder
    from oprag.embedding.static import LocalEmbedder
    from oprag.embedding.vector_cache import VectorCache
    from oprag.index.document_index import DocumentIndex
    from oprag.index.splitting import TokenWindow, split_recursive, split_tokens
    from oprag.pipeline.neighbors import neighbors_among
    from oprag.positions.check_report import PositionCheck, SourceCheck
    from oprag.positions.locate import Located, locate_positions
    from oprag.positions.source_reader import SourceFolder
    from oprag.stores.positions import WrittenPositions, WrittenSource


for _name in __all__:
    if _name not in _LOADED_LATER:
        set_public_module(__name__, globals()[_name])
del _name

__getattr__ = loader(__name__, _LOADED_LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
