"""Suggests a line of code for the chunks' framework that fixes a problem with the order of a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath
from typing import Any

from oprag.chunk import Chunk
from oprag.files.source_reader import READABLE
from oprag.masking import describe
from oprag.positions.fields import NAME_FIELDS, READ_FIELDS
from oprag.positions.placing import PARTS, UNNAMED
from oprag.positions.position_check import source_literal
from oprag.positions.source_order import (
    CONFLICTING_OFFSETS,
    INSERTION_ORDER_ONLY,
    MISSING,
    RESTARTED,
    SHARED_BY_STORE,
    TORN_APART,
    Listing,
    order_of,
)
from oprag.positions.sources import first_name, source_of
from oprag.positions.values import whole

__all__ = ["ADD_ONCE", "SHARED_NAME", "Remedies"]

SHARED_NAME = (
    "documents with different texts have the same page label, so several files seem to share one source name, or the "
    "page labels of a file restart"
)
"""A problem that only a check of all chunks finds."""

# Words in the names of metadata keys that contain the name of a file.
_FILE_WORDS = ("file", "path", "url", "doc", "title", "source")
_MAX_KEYS = 20
# Minimum number of chunks with numbers of their own, and maximum number of values for each: times and ids have more.
_MIN_COUNTED = 2
_MAX_GAPS = 2
_COUNTS = "  # if this key counts the chunks of a source"
_MAX_SUFFIX = 6  # characters of a file name suffix
ADD_ONCE = "  # and add it once"
_NAME_FILES = 'for document in documents: document.metadata["file_path"] = path  # for each file; fill the store again'
_UNLESS = "  # unless the source itself repeats these chunks"
_EACH_NAME = "  # or, if several files have this name, give each its own and fill the store again"
_TRUST = "  # or trust_store_order=True, if nothing was added later"


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Lines of code for one framework and one store.

    Attributes:
        stamp: Stamps positions at ingestion.
        name: Stamps positions and the source name, for chunks that do not name their source.
        offsets: Makes the splitter write offsets; empty if it does so by default, or cannot.
        write: Writes positions to the store, with `{options}`; empty if the store does not support it.
        retrieve: Retrieves with `{options}`.
        delete: Deletes a `{source}` from the store after a check with `{options}`; for a list of documents, removes
            its duplicates.
        module: The module of this package to import for these lines.
        checked: The options of that check.
    """

    stamp: str
    name: str
    offsets: str
    write: str
    retrieve: str
    delete: str
    module: str = ""
    checked: str = ""

    def against(self, cause: str, chunks: Sequence[Chunk], *, contradictory: bool = False) -> str:
        """Return the line that fixes a problem other than a source that was added more than once.

        Args:
            cause: `SHARED_NAME`, or one of the causes in `placing` and `source_order`.
            chunks: The chunks of the source with the problem, as they were read.
            contradictory: Whether the chunks state positions that contradict each other.
        """
        about_sources = cause in (UNNAMED, PARTS)
        if about_sources or contradictory or cause == SHARED_NAME:
            # Several files may share one source name.
            key = _file_key(chunks, verify=not about_sources)
            if key:
                return self.retrieval(f"source_key={describe(key)}")
        if cause == SHARED_NAME:
            return _NAME_FILES
        if about_sources:
            return self.name if cause == UNNAMED else self.retrieval(f"source_key={_shared_name(chunks)}")
        own = _own_key(chunks) if cause in {MISSING, INSERTION_ORDER_ONLY, TORN_APART} else ""
        if own:
            return self.retrieval(f"position_key={describe(own)}") + _COUNTS
        if self.write:
            by_store = cause in (INSERTION_ORDER_ONLY, SHARED_BY_STORE)
            alternative = _TRUST if by_store else _EACH_NAME if cause == CONFLICTING_OFFSETS else ""
            return self.writing(_reading_option(chunks)) + alternative
        stated = any("start_index" in chunk.metadata for chunk in chunks)
        return self.stamp if stated or cause == RESTARTED or not self.offsets else self.offsets

    def writing(self, option: str) -> str:
        """Return the line that writes positions to the store; empty if the store does not support it."""
        return self.write.format(options=option and f", {option}")

    def deletion(self, source: str | None, *, copied: bool) -> str:
        """Return the line that deletes a source which was added more than once; if `copied`, its duplicates alone."""
        line = self.delete
        if copied:
            line = line.replace(".ids(", ".duplicate_ids(").removesuffix(ADD_ONCE)
        elif ".distinct(" in line:
            line += _UNLESS
        return line.format(source=source_literal(source), options=self.checked)

    def retrieval(self, options: str) -> str:
        """Return the line that makes a retriever with these options."""
        return self.retrieve.format(options=options)


def _file_key(chunks: Sequence[Chunk], *, verify: bool) -> str:
    """Return the metadata key that names the file of each chunk; with `verify`, only if it resolves all doubts."""
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
        if not verify:
            return key
        files = [[chunk for chunk in chunks if first_name(chunk.metadata, key) == name] for name in names]
        if len(names) > 1 and not any(
            order_of(Listing(file, in_sequence=True, complete=True)).uncertain for file in files
        ):
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
