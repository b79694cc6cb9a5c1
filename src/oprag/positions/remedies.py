"""Suggests a line of code that fixes a problem with the order of a source, and proves it on the listed chunks first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath
from typing import Any

from oprag.chunk import Chunk, Uncertain
from oprag.files.source_reader import READABLE
from oprag.masking import describe
from oprag.positions.check_report import source_literal
from oprag.positions.copies import copies_of
from oprag.positions.fields import NAME_FIELDS, READ_FIELDS
from oprag.positions.overlaps import overlap_of
from oprag.positions.placing import PARTS, UNNAMED
from oprag.positions.source_order import (
    ADDED_AGAIN,
    INSERTION_ORDER_ONLY,
    MISSING,
    SHARED_BY_STORE,
    TORN_APART,
    Listing,
    SourceOrder,
    order_of,
)
from oprag.positions.source_text import SourceText
from oprag.positions.sources import first_name, source_of
from oprag.positions.values import whole

__all__ = ["ADD_ONCE", "NOT_IN_TEXT", "Remedies"]

NOT_IN_TEXT = "chunks that are not in the text of their source"
"""A cause that only a check with `read_source` finds."""

# Words in the names of metadata keys that contain the name of a file.
_FILE_WORDS = ("file", "path", "url", "doc", "title", "source")
_MAX_KEYS = 20
# Minimum number of chunks with numbers of their own, and maximum number of values for each: times and ids have more.
_MIN_COUNTED = 2
_MAX_GAPS = 2
_COUNTS = "  # if this key counts the chunks of a source"
_MAX_SUFFIX = 6  # characters of a file name suffix
ADD_ONCE = "  # and add it once"
_TRUST = "  # or trust_store_order=True, if nothing was added later"


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Lines of code for one framework and one store.

    Attributes:
        stamp: Stamps positions at ingestion.
        name: Stamps positions and the source name, for chunks that do not name their source.
        write: Writes positions to the store, with `{options}`; empty if the store does not support it.
        retrieve: Retrieves with `{options}`.
        delete: Deletes a `{source}` from the store after a check with `{options}`; empty if it cannot be deleted.
        module: The module of this package to import for these lines.
        checked: The options of that check.
    """

    stamp: str
    name: str
    write: str
    retrieve: str
    delete: str
    module: str = ""
    checked: str = ""

    def against(self, cause: str, order: SourceOrder, listing: Listing) -> str:
        """Return the first line that fixes a problem; empty if none does.

        Args:
            cause: `NOT_IN_TEXT`, or one of the causes in `placing` and `source_order`.
            order: The order of the source.
            listing: Its chunks.
        """
        if cause == PARTS:
            key = _file_key(listing.chunks, proved=False)
            return self.retrieval(f"source_key={describe(key) if key else _shared_name(listing.chunks)}")
        if cause == UNNAMED:
            key = _file_key(listing.chunks, proved=False)
            return self.retrieval(f"source_key={describe(key)}") if key else self.name
        return next(self._proved(cause, order, listing), "")

    def _proved(self, cause: str, order: SourceOrder, listing: Listing) -> Iterator[str]:
        """Yield the lines that would make the order of these chunks certain, the one with least effort first."""
        key = _file_key(listing.chunks, proved=True)
        if key:
            yield self.retrieval(f"source_key={describe(key)}")
        key = _own_key(listing.chunks) if cause in {MISSING, INSERTION_ORDER_ONLY, TORN_APART} else ""
        if key and not order_of(listing, key).uncertain:
            yield self.retrieval(f"position_key={describe(key)}") + _COUNTS
        if cause in {ADDED_AGAIN, NOT_IN_TEXT}:
            if self.delete and not order_of(_once(listing, order)).uncertain:
                yield self.deletion(listing.chunks[0].source)
        elif self.write and not order_of(listing, None, _text_of(order)).uncertain:
            by_store = cause in {INSERTION_ORDER_ONLY, SHARED_BY_STORE}
            yield self.writing(_reading_option(listing.chunks)) + (_TRUST if by_store else "")
        yield self.stamp

    def writing(self, option: str) -> str:
        """Return the line that writes positions to the store; empty if the store does not support it."""
        return self.write.format(options=option and f", {option}")

    def deletion(self, source: str | None) -> str:
        """Return the line that deletes a source; empty if it cannot be deleted."""
        return self.delete.format(source=source_literal(source), options=self.checked)

    def retrieval(self, options: str) -> str:
        """Return the line that makes a retriever with these options."""
        return self.retrieve.format(options=options)


def _once(listing: Listing, order: SourceOrder) -> Listing:
    """Return the chunks as the store lists them when the source was deleted and added once."""
    again = {index for index, causes in order.uncertain.items() if Uncertain(ADDED_AGAIN, "alone") in causes}
    again |= copies_of(listing.chunks).keys()
    return listing._replace(chunks=[chunk for index, chunk in enumerate(listing.chunks) if index not in again])


def _text_of(order: SourceOrder) -> SourceText:
    """Return a text from which these chunks may have been split."""
    in_order = sorted(range(len(order.keys)), key=lambda index: (order.keys[index] is None, order.keys[index] or ()))
    parts: list[str] = []
    before: int | None = None
    for index in in_order:
        text = order.chunks[index].text
        if before is None:
            parts.append(text)
        elif text != order.chunks[before].text or order.keys[index] != order.keys[before]:
            overlap = overlap_of(order.chunks[before].text, text)
            parts.append(text[overlap:] if overlap else f"\n{text}")
        before = index
    return SourceText("".join(parts))


def _file_key(chunks: Sequence[Chunk], *, proved: bool) -> str:
    """Return the metadata key that names the file of each chunk; if `proved`, only if the order of each is certain."""
    keys: list[Any] = list(chunks[0].metadata)[:_MAX_KEYS]
    for key in keys:
        if not isinstance(key, str) or not any(word in key.lower() for word in _FILE_WORDS):
            continue
        # The headings above a chunk, such as LlamaIndex's "header_path", name a part of a file.
        if "head" in key.lower():
            continue
        names = {first_name(chunk.metadata, key) for chunk in chunks}
        # Not numbers, such as the size of the file.
        if not all(isinstance(chunk.metadata[key], str | PathLike) for chunk in chunks if key in chunk.metadata):
            continue
        if None in names or len(names) == len(chunks):
            continue
        if not proved:
            return key
        files = [[chunk for chunk in chunks if first_name(chunk.metadata, key) == name] for name in names]
        orders = [order_of(Listing(file, in_sequence=True, complete=True)) for file in files if len(names) > 1]
        if orders and not any(order.uncertain for order in orders):
            return key
    return ""


def _own_key(chunks: Sequence[Chunk]) -> str:
    """Return the metadata key whose numbers may count the chunks of a source: each has its own, and few are missing."""
    keys: list[Any] = list(chunks[0].metadata)[:_MAX_KEYS]
    for key in keys:
        numbers = {whole(chunk.metadata.get(key)) for chunk in chunks}
        known = [number for number in numbers if number is not None]
        each = isinstance(key, str) and key not in READ_FIELDS and len(known) == len(chunks) > _MIN_COUNTED
        if each and max(known) - min(known) < _MAX_GAPS * len(known):
            return str(key)
    return ""


def _reading_option(chunks: Sequence[Chunk]) -> str:
    """Return the option that reads the text of a source: a folder, or for other files the documents of the loader."""
    suffix = PurePath(source_of(chunks[0]) or "").suffix.lower()
    is_file = 1 < len(suffix) <= _MAX_SUFFIX and suffix[1:].isalnum() and not suffix[1:].isdigit()
    return "read_source=documents" if is_file and suffix not in READABLE else 'read_source="folder"'


def _shared_name(chunks: Sequence[Chunk]) -> str:
    """Return code for the name that parts of a source share: a URL without its fragment, else a placeholder."""
    for field in NAME_FIELDS:
        if "#" in (first_name(chunks[0].metadata, field) or ""):
            return f'lambda chunk: chunk.metadata["{field}"].partition("#")[0]'
    return "..."
