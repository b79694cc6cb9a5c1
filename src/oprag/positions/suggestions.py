"""Suggests a line of code that fixes a problem with the order of a source, and proves it on the listed chunks first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprag._internal.masking import describe
from oprag.chunk import Chunk, Uncertain
from oprag.positions.check_report import source_literal
from oprag.positions.copies import copies_of
from oprag.positions.fields import READ_FIELDS
from oprag.positions.retrieved import PARTS, UNNAMED
from oprag.positions.source_names import field_of
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
from oprag.positions.values import whole

__all__ = ["LANGCHAIN", "LLAMA_INDEX", "NOT_IN_TEXT", "Suggestions"]

NOT_IN_TEXT = "chunks that are not in the text of their source"
"""A cause that only a check with `read_source` finds."""

_MAX_KEYS = 20
# Minimum number of chunks with numbers of their own, and maximum number of values for each: times and ids have more.
_MIN_COUNTED = 2
_MAX_GAPS = 2


@dataclass(frozen=True, kw_only=True)
class Suggestions:
    """The lines of code of one framework, for a store or for chunks that are in no store yet."""

    chunks: str  # what they are called
    stamp: str
    name: str  # stamps the name of the source, too
    retrieve: str
    delete: Mapping[str, str]  # by the variable that contains the store
    store: str = "store"
    writable: bool = False
    deletable: bool = False
    filtered: bool = False  # a retriever with a filter was checked: other tenants' chunks must not be deleted
    options: str = ""  # of the check that lists the ids to delete

    def against(self, cause: str, order: SourceOrder, listing: Listing) -> str:
        """Return the simplest line that fixes a problem with this cause."""
        chunks = listing.chunks
        if cause == UNNAMED:
            return self.name
        if cause == PARTS:
            field = field_of(chunks, None)
            whole_url = f'lambda chunk: chunk.metadata["{field}"].partition("#")[0]'
            is_part_of_url = field and "#" in (chunks[0].source or "")
            return self.retrieve.format(options=f"source_key={whole_url if is_part_of_url else '...'}")
        if cause in {MISSING, INSERTION_ORDER_ONLY, TORN_APART} and (key := _own_key(chunks)):
            line = self.retrieve.format(options=f"position_key={describe(key)}")
            return f"{line}  # if this key counts the chunks of a source"
        return self._proved(cause, order, listing) or self.stamp

    def _proved(self, cause: str, order: SourceOrder, listing: Listing) -> str:
        """Return the line about the store that makes the order of these chunks certain; empty if none does."""
        if cause in {ADDED_AGAIN, NOT_IN_TEXT}:
            certain = self.deletable and not order_of(_once(listing, order)).uncertain
            return self.deletion(listing.chunks[0].source) if certain else ""
        if not self.writable or order_of(listing, None, _text_of(order)).uncertain:
            return ""
        by_store = cause in {INSERTION_ORDER_ONLY, SHARED_BY_STORE}
        trust = "  # or trust_store_order=True, if nothing was added later" if by_store else ""
        return f"write_positions({self.store}, read_source=documents){trust}"

    def deletion(self, source: str | None) -> str:
        """Return the line that deletes a source; empty if it cannot be deleted."""
        checked = "retriever" if self.filtered else self.store
        ids = f"check_positions({checked}{self.options}).ids({source_literal(source)})"
        return self.delete[self.store].format(ids=ids) + "  # and add it once" if self.deletable else ""


LANGCHAIN = Suggestions(
    chunks="documents",
    stamp="documents = stamp_positions(documents)  # and fill a new store",
    name='documents = stamp_positions(documents, source="...")  # and fill a new store',
    retrieve="OrderPreservingRetriever(vectorstore=store, {options})",
    delete={"store": "store.delete({ids})"},
)
LLAMA_INDEX = Suggestions(
    chunks="nodes",
    stamp="nodes = StampPositions()(parser.get_nodes_from_documents(documents))  # and make a new index",
    name='nodes = StampPositions(source="...")(parser.get_nodes_from_documents(documents))  # and make a new index',
    retrieve="OrderPreservingRetriever(retriever=index.as_retriever(), {options})",
    store="index",
    delete={
        "index": "index.delete_nodes({ids}, delete_from_docstore=True)",
        "vector_store": "vector_store.delete_nodes({ids})",
        "docstore": "[docstore.delete_document(key) for key in {ids}]",
    },
)


def _once(listing: Listing, order: SourceOrder) -> Listing:
    """Return the chunks as the store lists them when the source was deleted and added once."""
    again = {index for index, causes in order.uncertain.items() if Uncertain(ADDED_AGAIN, "alone") in causes}
    again |= copies_of(listing.chunks).keys()
    return listing._replace(chunks=[chunk for index, chunk in enumerate(listing.chunks) if index not in again])


def _text_of(order: SourceOrder) -> SourceText:
    """Return a text from which these chunks may have been split; copies are in it once."""
    in_order = sorted(range(len(order.keys)), key=lambda index: (order.keys[index] is None, order.keys[index] or ()))
    texts = dict.fromkeys((order.keys[index], order.chunks[index].text) for index in in_order)
    return SourceText("\n".join(text for _, text in texts))


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
