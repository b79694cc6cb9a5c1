"""What `write_positions` adds to the metadata in a store so that the order of its chunks is known, and its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from oprag.chunk import Chunk, PositionKind, Span, changed, counted
from oprag.masking import masked_error
from oprag.positions.insertion import StoredChunk, read_insertion_order
from oprag.positions.ladder import NUMBERING_FIELD, PAGE_FIELDS, STAMP_FIELD
from oprag.positions.locate import SourceText
from oprag.positions.placing import Placed, place, without_order
from oprag.positions.sources import SourceKey
from oprag.positions.stamp import stamps
from oprag.text_table import html_table, table

__all__ = ["WrittenPositions", "WrittenSource", "plan_positions"]

_HEAD = ("source", "chunks", "written", "position from", "note")
_SHOWN = 40


class WrittenSource(NamedTuple):
    """What was written for one source.

    Attributes:
        source: Its name; None for chunks that do not say.
        chunks: How many chunks it has in the store.
        written: How many of them were given a position.
        kind: How the positions are known.
        field: What they were read from, in words.
        note: Why nothing or not all was written, or what is not certain; empty otherwise.
    """

    source: str | None
    chunks: int
    written: int
    kind: PositionKind
    field: str
    note: str = ""


@dataclass(frozen=True)
class WrittenPositions:
    """What `write_positions` wrote into a store, or would write; printed, it is a table.

    Attributes:
        sources: What was written for each source whose chunks had no certain order.
        chunks: How many chunks the store has.
        known: How many sources have positions already.
        dry_run: Whether nothing was written.
        added: The metadata that were added, by the id of the chunk.
    """

    sources: tuple[WrittenSource, ...]
    chunks: int
    known: int
    dry_run: bool
    added: dict[str, dict[str, object]] = field(repr=False)

    @property
    def written(self) -> int:
        """How many chunks were given a position."""
        return len(self.added)

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON can hold."""
        return {
            "chunks": self.chunks,
            "written": self.written,
            "known_sources": self.known,
            "dry_run": self.dry_run,
            "sources": [{**one._asdict(), "kind": one.kind.name.lower()} for one in self.sources],
        }

    def __str__(self) -> str:
        lines = [self._summary]
        if self.sources:
            lines += ["", *table(_HEAD, self._rows())]
        if len(self.sources) > _SHOWN:
            lines.append(f"  and {counted(len(self.sources) - _SHOWN, 'source')} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self._summary, _HEAD, self._rows())

    @property
    def _summary(self) -> str:
        verb = "would be written" if self.dry_run else "were written"
        known = f"; {counted(self.known, 'source')} had positions already" if self.known else ""
        return f"positions of {self.written:,} of {counted(self.chunks, 'chunk')} {verb}{known}"

    def _rows(self) -> list[list[str]]:
        return [
            [
                "(not named)" if one.source is None else one.source,
                f"{one.chunks:,}",
                f"{one.written:,}",
                one.field or "-",
                one.note,
            ]
            for one in self.sources[:_SHOWN]
        ]


def plan_positions(
    chunks: Sequence[Chunk],
    store: str,
    *,
    in_insertion_order: bool,
    read_source: Callable[[str], str] | None,
    source_key: SourceKey | None,
    dry_run: bool,
) -> WrittenPositions:
    """Find the positions of chunks whose metadata do not tell their order.

    Args:
        chunks: All chunks of a store, with their ids.
        store: The name of the store, for the report.
        in_insertion_order: Whether the store received them in this sequence.
        read_source: Reads the text of a source.
        source_key: See `ContextOptions.source_key`.
        dry_run: What the report says.
    """
    placed = place(chunks, source_key, None)
    uncertain = {group[0].source for group in without_order(placed)}
    sources: list[WrittenSource] = []
    added: dict[str, dict[str, object]] = {}
    unnamed = sum(report.source is None for report in placed.sources)
    if unnamed:
        note = "these chunks do not say which source they came from"
        sources.append(WrittenSource(None, unnamed, 0, PositionKind.NONE, "", note))
    known = 0
    for report in placed.sources:
        if report.source is None:
            continue
        # Links order all chunks of a source, and not always those that a question finds.
        linked = report.kind is PositionKind.LINKS and report.chunks > 1
        if report.source not in uncertain and not linked:
            known += 1
            continue
        group = [chunks[chunk.rank] for chunk in placed.groups[report.source]]
        notes: list[str] = []
        if read_source is not None:
            group = _located(group, report.source, read_source, notes)
        if in_insertion_order:
            group = _in_store(group, store, notes)
        found = place(group, source_key, None)
        metadata = _metadata(found, source_key, notes)
        added.update(metadata)
        kind, field_name = found.sources[0].kind, found.sources[0].field
        sources.append(WrittenSource(report.source, len(group), len(metadata), kind, field_name, "; ".join(notes)))
    return WrittenPositions(tuple(sources), len(chunks), known, dry_run, added)


def _located(group: Sequence[Chunk], source: str, read_source: Callable[[str], str], notes: list[str]) -> list[Chunk]:
    """The chunks of a source with their places in its text."""
    try:
        text = SourceText(read_source(source))
    except Exception as error:  # noqa: BLE001 - a function of the caller raises what it likes
        notes.append(f"its text cannot be read: {masked_error(error)}")
        return list(group)
    text.learn(chunk.text for chunk in group)
    return [
        chunk if one is None else changed(chunk, located=Span(*one))
        for chunk, one in zip(group, text.locate(group), strict=True)
    ]


def _in_store(group: Sequence[Chunk], store: str, notes: list[str]) -> list[Chunk]:
    """The chunks of a source with their places in the sequence of the store."""
    order = read_insertion_order([StoredChunk(str(chunk.rank), chunk.text, chunk.metadata) for chunk in group], store)
    if order.refuted:
        notes.append(order.refuted)
        return list(group)
    return [changed(chunk, store_place=order.places[str(chunk.rank), 0]) for chunk in group]


def _metadata(placed: Placed, source_key: SourceKey | None, notes: list[str]) -> dict[str, dict[str, object]]:
    """What to add to the chunks of a source, by their ids."""
    (report,) = placed.sources
    if report.kind is PositionKind.LINKS and report.runs > 1:
        notes.append("its chunks are linked in several runs whose relative order is unknown")
        return {}
    known = [(chunk.position.key, chunk) for chunk in placed.chunks if chunk.position and chunk.position.known]
    if report.missing:
        notes.append(f"nothing tells the position of {counted(report.missing, 'chunk')}")
        unknown = (chunk for chunk in placed.chunks if not (chunk.position and chunk.position.known))
        if any(STAMP_FIELD in chunk.metadata for chunk in unknown):
            # Numbers of two stampings cannot be compared.
            notes.append(f"these have a {STAMP_FIELD} of their own, so nothing is written")
            return {}
    if report.kind is PositionKind.PAGE and without_order(placed):
        notes.append("several chunks share a page, and nothing tells their order there")
        return {}
    if report.kind is PositionKind.STORE and report.runs > 1:
        notes.append("overlapping texts do not confirm all of the sequence")
    # Equal chunks at one place are one, as retrieval reads them.
    numbered: dict[tuple[Any, str], Chunk] = {}
    for key, chunk in sorted(known, key=itemgetter(0)):
        numbered.setdefault((key, chunk.text), chunk)
    stamped = dict(zip(numbered, stamps(list(numbered.values()), None, source_key), strict=True))
    with_pages = any(field in chunk.metadata for chunk in placed.chunks for field in PAGE_FIELDS)
    added: dict[str, dict[str, object]] = {}
    for key, chunk in known:
        metadata: dict[str, object] = {name: stamped[key, chunk.text][name] for name in (STAMP_FIELD, NUMBERING_FIELD)}
        # Beside a page, an offset counts from the start of the page.
        if chunk.located is not None and not with_pages:
            metadata |= {"start_index": chunk.located.start, "end_index": chunk.located.end}
        added[chunk.id or ""] = metadata
    return added
