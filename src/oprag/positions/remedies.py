"""The line of code that mends the order of a source: which one fits its problem, in the words of a framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oprag.chunk import Chunk
from oprag.masking import describe
from oprag.options import ContextOptions
from oprag.positions.insertion_order import ADDED_AGAIN
from oprag.positions.placing import BY_STORE, PARTS, RESTARTED, SHARED_BY_STORE, UNNAMED, doubts, place
from oprag.positions.position_check import source_literal
from oprag.positions.sources import NAME_FIELDS, first_name

__all__ = ["Remedies"]

# What the metadata keys are called that name a file.
_FILE_WORDS = ("file", "path", "url", "doc", "title", "source")
_MOST_KEYS = 20
_TRUST = "  # or trust_store_order=True, if nothing was added later"


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Lines of code for one framework and one store.

    Attributes:
        stamp: Stamps positions at ingestion.
        name: The same for chunks that do not say their source.
        offsets: Makes the splitter write offsets; empty where it does so by itself, or cannot.
        write: Writes positions into the store, with `{options}`; empty where that is impossible.
        retrieve: Retrieves with `{options}`.
        delete: Deletes a `{source}` from the store, which is checked with `{options}`; from documents, what is there
            twice.
        checked: The options of that check.
    """

    stamp: str
    name: str
    offsets: str
    write: str
    retrieve: str
    delete: str
    checked: str = ""

    def against(self, cause: str, source: str | None, chunks: Sequence[Chunk], *, contradictory: bool) -> str:
        """The line for a problem.

        Args:
            cause: One of the causes in `placing` and `insertion`.
            source: The source that has it.
            chunks: Its chunks, as they were read.
            contradictory: Whether they state positions that contradict each other.
        """
        if cause == ADDED_AGAIN:
            return self.deletion(source)
        about_sources = cause in (UNNAMED, PARTS)
        if about_sources or contradictory:
            # Several files may have one name.
            key = _file_key(chunks, surely=not about_sources)
            if key:
                return self.retrieval(f"source_key={describe(key)}")
        if about_sources:
            return self.name if cause == UNNAMED else self.retrieval(f"source_key={_shared_name(chunks)}")
        if self.write:
            by_store = cause in (BY_STORE, SHARED_BY_STORE)
            return self.writing('read_source="folder"') + (_TRUST if by_store else "")
        stated = any("start_index" in chunk.metadata for chunk in chunks)
        return self.stamp if stated or cause == RESTARTED or not self.offsets else self.offsets

    def writing(self, option: str) -> str:
        """The line that writes positions into the store; empty where that is impossible."""
        return self.write.format(options=option and f", {option}")

    def deletion(self, source: str | None) -> str:
        """The line for a source that is in the store twice."""
        return self.delete.format(source=source_literal(source), options=self.checked)

    def retrieval(self, options: str) -> str:
        """The line for a retriever with other options."""
        return self.retrieve.format(options=options)


def _file_key(chunks: Sequence[Chunk], *, surely: bool) -> str:
    """The metadata key that names the file of each chunk; surely, if the chunks of each file are then in order."""
    keys: list[Any] = list(chunks[0].metadata)[:_MOST_KEYS]
    for key in keys:
        if not isinstance(key, str) or not any(word in key.lower() for word in _FILE_WORDS):
            continue
        names = {first_name(chunk.metadata, key) for chunk in chunks}
        if None in names or len(names) == len(chunks):
            continue
        if not surely:
            return key
        placed = place(chunks, key, None)
        if len(names) > 1 and not doubts(placed, placed.chunks, ContextOptions()):
            return key
    return ""


def _shared_name(chunks: Sequence[Chunk]) -> str:
    """What names the source of its parts: an address before its fragment, or what only its user knows."""
    for field in NAME_FIELDS:
        if "#" in (first_name(chunks[0].metadata, field) or ""):
            return f'lambda chunk: chunk.metadata["{field}"].partition("#")[0]'
    return "..."
