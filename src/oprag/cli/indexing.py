"""How the command line splits and searches files, declared once for its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from oprag.compare.providers.names import LOCAL
from oprag.errors import OptionError
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split, Splitter
from oprag.options import check_choice, option

__all__ = ["LOCAL", "Indexing"]


@dataclass(frozen=True, kw_only=True)
class Indexing:
    """How files become an index, and how it is searched.

    Raises:
        OptionError: An option has a value that it cannot have.
    """

    splitter: Splitter = option(
        "tokens",
        "How files are split: tokens or words (windows of equal size) or recursive (between paragraphs, lines, words).",
    )
    chunk_size: int | None = option(
        None, "Tokens in a chunk, or words; by default 128 tokens, 300 words or, recursive, 1,000 tokens."
    )
    chunk_overlap: int | None = option(
        None, "Tokens or words that neighbouring chunks share; by default none or, recursive, a tenth of the size."
    )
    search: SearchKind = option(
        "dense", "How chunks are ranked: dense (by cosine), bm25 (by words; embeds nothing) or hybrid (both, fused)."
    )
    embeddings: str = option(
        LOCAL,
        "local, a small embedder that comes in a package, or PROVIDER:MODEL, as LangChain's init_embeddings takes it, "
        "such as openai:text-embedding-3-small.",
    )
    index_cache: str | None = option(
        None,
        "A folder where the index and the pages of these files are kept, so that the next question need not make them "
        "again. They contain the text of the files; only you can read them.",
    )
    forget: bool = option(
        default=False,
        description="Delete everything that is kept in the folder of --index-cache first, of other files too.",
    )

    def __post_init__(self) -> None:
        check_choice("splitter", self.splitter, get_args(Splitter))
        check_choice("search", self.search, get_args(SearchKind))
        for name in ("embeddings", "index_cache"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise OptionError(f"{name} must not be empty", value)
        if self.forget and self.index_cache is None:
            raise OptionError("--forget needs --index-cache, the folder to delete from", self.forget)

    @property
    def split(self) -> Split:
        """How files are split, with the defaults of the splitter."""
        return Split(self.splitter, self.chunk_size, self.chunk_overlap).complete()

    @property
    def needs_vectors(self) -> bool:
        """Whether all chunks must be embedded to be ranked."""
        return self.search != "bm25"
