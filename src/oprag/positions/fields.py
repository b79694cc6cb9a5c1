"""The metadata fields in which loaders, splitters and stores write sources and positions, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

__all__ = [
    "BY_STORE_NUMBERING",
    "DOCUMENT_ID_FIELDS",
    "ID_FIELDS",
    "LABEL_FIELD",
    "LAYOUTS",
    "NAME_FIELDS",
    "NUMBERING_FIELD",
    "NUMBER_FIELDS",
    "PAGE_FIELDS",
    "PAGE_NUMBER_FIELDS",
    "PLACEHOLDERS",
    "READ_FIELDS",
    "ROOTS",
    "SECONDS_FIELD",
    "SOURCE_FIELDS",
    "STAMPED_FIELDS",
    "STAMP_FIELD",
    "START_FIELDS",
    "USED_FIELDS",
    "WITHIN_PAGE_FIELDS",
    "heading_levels",
    "is_by_store",
    "level_fields",
    "name_headings",
    "with_usual_fields",
]

# Names before ids: PDF readers make one document per page, each with a random id, so grouping by id would split the
# file.
NAME_FIELDS = (
    *("source", "file_path", "url", "file_name"),
    *("filename", "fileName", "sourceURL"),  # Unstructured, n8n, Firecrawl
    *("docnm_kwd", "document_name"),  # RAGFlow, Dify
)
DOCUMENT_ID_FIELDS = ("ref_doc_id", "document_id")
"""Fields in which LlamaIndex's stores write the id of a node's document."""
ID_FIELDS = (*DOCUMENT_ID_FIELDS, "full_doc_id", "file_id")
SOURCE_FIELDS = (*NAME_FIELDS, *ID_FIELDS)
PLACEHOLDERS = frozenset({"blob"})
"""Values that name no source: LangChain.js writes "blob" for every file that it reads from memory, as n8n does."""

STAMP_FIELD = "chunk_index"
NUMBERING_FIELD = "chunk_numbering"
BY_STORE_NUMBERING = "s"
"""First letter of numberings of an assumed order, such as a store's; a source text takes precedence over them."""
_BY_STORE_NUMBERING = re.compile(f"{BY_STORE_NUMBERING}[0-9a-f]{{12}}")
STAMPED_FIELDS = (
    STAMP_FIELD,
    *("chunk_idx", "chunk_number", "chunk_order", "split_id"),
    "chunk_order_index",  # LightRAG
    "chunk_order_int",  # RAGFlow
)
START_FIELDS = {
    "start_index": "end_index",
    "start_char_idx": "end_char_idx",
    "char_start": "char_end",
    "start_char": "end_char",
    "start_offset": "end_offset",
    "split_idx_start": "split_idx_end",  # Haystack
}
"""Fields of start offsets, and those of the end offsets (exclusive)."""
PAGE_NUMBER_FIELDS = ("page", "page_number")
LABEL_FIELD = "page_label"
PAGE_FIELDS = (*PAGE_NUMBER_FIELDS, LABEL_FIELD)
SECONDS_FIELD = "start_seconds"
NUMBER_FIELDS = (
    *("row", "seq_num", "sequence_number", "sequence", "order", "index", "slide", "line"),
    "segment_position",  # Dify
)
"""Other numbers that grow along a source, and that several chunks may share."""
WITHIN_PAGE_FIELDS = (*STAMPED_FIELDS, *NUMBER_FIELDS, "top")
"""Numbers that may start again on each page, and then order the chunks of a page."""

_LEVEL_FIELD = re.compile(r"(?:header|heading|h)[ _]?([1-6])", re.IGNORECASE)

READ_FIELDS = frozenset({*SOURCE_FIELDS, *STAMPED_FIELDS, *PAGE_FIELDS, *START_FIELDS, SECONDS_FIELD, *NUMBER_FIELDS})
"""The metadata keys that sources and positions are read from."""
USED_FIELDS = frozenset({*READ_FIELDS, *START_FIELDS.values(), *WITHIN_PAGE_FIELDS, NUMBERING_FIELD})
"""These, and those that are only read beside them."""

_Path = tuple[str | int, ...]

LAYOUTS: Mapping[str, Mapping[_Path, str]] = {
    "LangChain.js, n8n, Flowise": {
        ("loc", "pageNumber"): "page_number",
        ("loc", "lines", "from"): "line",
        ("locFrom",): "line",
    },
    "Docling": {
        ("dl_meta", "doc_items", 0, "prov", 0, "page_no"): "page_number",
        ("dl_meta", "origin", "filename"): "filename",
        ("dl_meta", "headings"): "headings",
    },
    "RAGFlow": {("page_num_int", 0): "page_number", ("top_int", 0): "top"},
    "Amazon Bedrock": {
        ("x-amz-bedrock-kb-document-page-number",): "page_number",
        ("x-amz-bedrock-kb-source-uri",): "url",
        ("source_metadata", "x-amz-bedrock-kb-document-page-number"): "page_number",
        ("source_metadata", "x-amz-bedrock-kb-source-uri"): "url",
        ("location", "s3Location", "uri"): "url",
    },
}
"""Where other tools write a field: for each tool, the path in the metadata, and the usual field with this meaning.

Stores that allow only plain values flatten a path: its parts are joined with dots.
"""

_PATHS = [(path, field) for paths in LAYOUTS.values() for path, field in paths.items()]
ROOTS = frozenset(".".join(map(str, path[:length])) for path, _ in _PATHS for length in range(1, len(path) + 1))
"""Metadata keys at which such a path begins; it may be flattened up to any of its parts."""


def is_by_store(metadata: Mapping[Any, Any]) -> bool:
    """Return whether the number of a chunk was written from a store's insertion order, or another assumed order."""
    name = metadata.get(NUMBERING_FIELD)
    return isinstance(name, str) and _BY_STORE_NUMBERING.fullmatch(name) is not None


def with_usual_fields(metadata: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the metadata with the usual fields for what other tools write elsewhere; unchanged if nothing is."""
    if ROOTS.isdisjoint(metadata):
        return metadata
    found: dict[Any, Any] = {}
    for path, field in _PATHS:
        value = _value_at(metadata, path)
        if value is not None:
            found.setdefault(field, value)
    # Fields that are written as usual take precedence.
    return {**found, **metadata}


@lru_cache
def level_fields(fields: tuple[Any, ...]) -> Mapping[str, int]:
    """Return which metadata keys contain the heading of a level, from 0; cached, as chunks of a store share them."""
    found = ((name, _LEVEL_FIELD.fullmatch(str(name))) for name in fields)
    return {name: int(level[1]) - 1 for name, level in found if level}


def name_headings(metadata: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a splitter that cuts at headings wrote some of these metadata."""
    return any(map(level_fields, {tuple(one) for one in metadata}))


def heading_levels(metadata: Mapping[str, Any]) -> list[str]:
    """Return the heading of each of the six levels that Markdown and HTML splitters store, such as "Header 1"."""
    path = [""] * 6
    for name, level in level_fields(tuple(metadata)).items():
        if isinstance(metadata[name], str):
            path[level] = metadata[name]
    return path


def _value_at(value: Any, path: _Path) -> Any:
    """Return the value at a path, any parts of which may be joined with dots; None if it is missing."""
    if not path:
        return value
    if isinstance(value, Mapping):
        for length in range(1, len(path) + 1):
            name = ".".join(map(str, path[:length]))
            if name in value:
                return _value_at(value[name], path[length:])
    elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(path[0], int):
        return _value_at(value[path[0]], path[1:]) if len(value) > path[0] else None
    return None
