"""Output formats of contexts and passages: text reports, JSON values and metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from oprag._internal.masking import shown
from oprag._internal.text_table import table
from oprag.chunk import Chunk, Drop, Passage, PositionKind, Span, chunk_to_dict
from oprag.pipeline.continuity import Values
from oprag.positions.readings import kind_text, page_of
from oprag.positions.retrieved import SourceReport

__all__ = ["METADATA_KEY", "common_metadata", "passage_to_dict", "report", "span_of"]

_MAX_NAMED = 4  # chunks that displaced another one
_NAME_WIDTH = 80  # characters of a source name, page label or position


def report(
    summary: str,
    passages: Sequence[Passage],
    dropped: Sequence[Drop],
    sources: Sequence[SourceReport],
    values: Values | None = None,
) -> str:
    """The report of `Context.explain`: the summary line, then tables of sources, kept chunks and dropped chunks."""
    lines = [summary, "", "sources"]
    lines += table(
        ["source", "chunks", "without position", "order by"],
        [[_name(one.source), str(one.chunks), str(one.missing), _kind_text(one)] for one in sources],
    )
    kept = [chunk for passage in passages for chunk in passage.chunks]
    chunks = [*kept, *(drop.chunk for drop in dropped)]
    columns = [column for column in _COLUMNS if column.always or any(column.cell(chunk) != "-" for chunk in chunks)]
    heads = [column.head for column in columns]
    lines += ["", "kept, in order"]
    lifted = {} if values is None else values.lifted(kept)
    by = {rank: ", ".join(map(str, around)) for rank, around in lifted.items()}
    lines += table(
        ["passage", *heads, *(["lifted by"] if by else [])],
        [
            [str(number), *(column.cell(chunk) for column in columns), *([by.get(chunk.rank, "-")] if by else [])]
            for number, passage in enumerate(passages, 1)
            for chunk in passage.chunks
        ],
    )
    if dropped:
        lines += ["", "dropped"]
        lines += table(
            [*heads, "reason", "detail"],
            [
                [*(column.cell(drop.chunk) for column in columns), drop.reason, _detail(drop, values, list(lifted))]
                for drop in dropped
            ],
        )
    return "\n".join(lines)


def _detail(drop: Drop, values: Values | None, lifted: Sequence[int]) -> str:
    displaced_by = [] if values is None else values.displaced_by(drop, lifted)
    if not displaced_by:
        return drop.detail
    more = f" and {len(displaced_by) - _MAX_NAMED} more" if len(displaced_by) > _MAX_NAMED else ""
    return f"{drop.detail}; displaced by rank {', '.join(map(str, displaced_by[:_MAX_NAMED]))}{more}"


def _name(source: str | None) -> str:
    return shown(source or "(unknown)", _NAME_WIDTH)


def _page(chunk: Chunk) -> str:
    page = page_of(chunk)
    return "" if page is None else shown(str(page), _NAME_WIDTH)


def _kind_text(source: SourceReport) -> str:
    text = kind_text(source.kind, source.field)
    if source.runs > 1:
        known = "is known only to the store" if source.kind is PositionKind.STORE else "is unknown"
        text += f"; {source.runs} runs whose order {known}"
    return text


def _position_text(chunk: Chunk) -> str:
    position = chunk.position
    if position is None or not position.known:
        return "-"
    page = _page(chunk)
    if page and position.kind in (PositionKind.PAGE, PositionKind.PAGE_OFFSET, PositionKind.STORE):
        return f"p. {page}" + (f": {position.key[1]}" if position.kind is PositionKind.PAGE_OFFSET else "")
    if position.kind is PositionKind.OFFSET and chunk.span is not None:
        return str(chunk.span.start)
    if position.kind is PositionKind.STORE:
        # Without the run, which is only needed for sorting.
        return str(position.key[-1])
    return shown(_key_text(position.key), _NAME_WIDTH)


def _key_text(key: tuple[object, ...]) -> str:
    return ".".join(_key_text(part) if isinstance(part, tuple) else str(part) for part in key)


def _span_text(chunk: Chunk) -> str:
    if chunk.span is None:
        return "-"
    page = "" if chunk.span.page is None else f"p. {_page(chunk)}: "
    return f"{page}{chunk.span.start:,}–{chunk.span.end:,}"


class _ChunkColumn(NamedTuple):
    """A column of the chunk tables; one that is empty for all chunks is omitted unless `always` is set."""

    head: str
    cell: Callable[[Chunk], str]
    always: bool = True


_COLUMNS = (
    _ChunkColumn("rank", lambda chunk: str(chunk.rank)),
    _ChunkColumn("score", lambda chunk: "-" if chunk.score is None else f"{chunk.score:.3f}"),
    _ChunkColumn("cosine", lambda chunk: "-" if chunk.similarity is None else f"{chunk.similarity:.3f}", always=False),
    _ChunkColumn("source", lambda chunk: _name(chunk.source)),
    _ChunkColumn("position", _position_text),
    _ChunkColumn("span", _span_text),
    _ChunkColumn(
        "neighbor of", lambda chunk: "-" if chunk.neighbor_of is None else f"rank {chunk.neighbor_of}", always=False
    ),
)


METADATA_KEY = "oprag"
"""The only metadata key that adapters write to."""


def passage_to_dict(passage: Passage) -> dict[str, Any]:
    """Source, spans and chunks of a passage, as JSON-serializable values."""
    return {
        "source": passage.source,
        "spans": [span._asdict() for span in passage.spans],
        "chunks": [chunk_to_dict(chunk) for chunk in passage.chunks],
    }


def span_of(passage: Passage) -> Span | None:
    """The span of a passage; None if unknown, or relative to the source although the metadata name a page."""
    span = passage.spans[0] if len(passage.spans) == 1 else None
    return None if span is None or (span.page is None and page_of(passage.chunks[0]) is not None) else span


def common_metadata(chunks: Sequence[Chunk]) -> dict[str, Any]:
    """The metadata entries that are equal in all chunks of a passage; others would be wrong for some of them."""
    first, others = chunks[0].metadata, [chunk.metadata for chunk in chunks[1:]]
    return {
        key: value for key, value in first.items() if all(_same(value, other.get(key, _ABSENT)) for other in others)
    }


_ABSENT = object()


def _same(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except (TypeError, ValueError):
        # Arrays compare element by element.
        return first is second
