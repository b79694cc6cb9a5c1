"""The result of a position check, as a table and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from oprag._internal.masking import clean, describe, shown
from oprag._internal.text_table import printable, safe, table
from oprag.chunk import PositionKind, counted
from oprag.errors import OptionError
from oprag.positions.readings import kind_text
from oprag.positions.source_order import Certainty

__all__ = ["Note", "PositionCheck", "SourceCheck", "shown_name", "source_literal", "source_table"]

_HEAD = ("", "source", "chunks", "order by", "order", "duplicates")
_MAX_ROWS = 20  # sources in a table
_NAME_WIDTH = 40  # characters of a source name in a table
_NAME_IN_JSON = 1_000  # characters of a source name


@dataclass(frozen=True, repr=False)
class SourceCheck:
    """The findings about the chunks of one source.

    Attributes:
        source: Name of the source; None for all chunks that do not name one.
        chunks: Number of chunks.
        kind: How the positions are known.
        field: The metadata keys that the positions were read from.
        certainty: How certain the order is: "known" if two witnesses agree on it or one determines it, "assumed" if
            nothing confirms it, "unknown" if rank decides somewhere.
        missing: Number of chunks without a position.
        duplicates: Number of chunks with the same text at the same place as an earlier one. Without exact positions,
            equal texts are duplicates only if the source, or a part of it, was added more than once.
        problem: Why the order is uncertain in retrieval; empty if it is certain.
        suggestion: A line of code that fixes the problem, tried on the listed chunks if it is about their order.
        ids: The ids for deleting the chunks from the store.
    """

    source: str | None
    chunks: int
    kind: PositionKind
    field: str
    certainty: Certainty
    missing: int
    duplicates: int
    problem: str = ""
    suggestion: str = ""
    ids: tuple[str, ...] = ()

    def __repr__(self) -> str:
        verdict = "a problem" if self.problem else "no problems"
        return f"SourceCheck({describe(self.source)}, {counted(self.chunks, 'chunk')}, {self.kind.name}, {verdict})"


class Note(NamedTuple):
    """A finding that does not affect the order, and a line of code against it, which may be empty."""

    what: str
    suggestion: str = ""


@dataclass(frozen=True, repr=False)
class PositionCheck:
    """The findings about the order of the sources in a store or list; prints as a table.

    Attributes:
        searched: Name of the store or list that was checked.
        sources: The sources, those with a problem first.
        chunks: Number of chunks that were read.
        sampled: Whether only the first `max_chunks` chunks were read, without the source in whose middle they end.
        notes: Findings that do not affect the order, such as duplicates.
    """

    searched: str
    sources: tuple[SourceCheck, ...]
    chunks: int
    sampled: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no source has a problem: retrieval puts all of them in order without a warning."""
        return not any(source.problem for source in self.sources)

    def ids(self, source: str | None) -> list[str]:
        """Return the ids of the chunks of a source, for the store's `delete`.

        Args:
            source: The name of the source, or the hash that a line of code contains instead of a long or secret name.

        Raises:
            OptionError: The source was not found, or not all chunks were read, so some of its ids may be missing.
        """
        if self.sampled:
            raise OptionError(
                f"only the first {counted(self.chunks, 'chunk')} were read, so ids of this source may be missing; "
                "check again with a larger max_chunks",
                source,
            )
        for one in self.sources:
            if source in (one.source, _hash_of(one.source)):
                return list(one.ids)
        raise OptionError(f"the check found no source {describe(source)}; check.sources contains all", source)

    def __repr__(self) -> str:
        lines = source_table(self._summary(), _HEAD, [_cells(source) for source in self.sources])
        for title, what, suggestion in self._findings():
            lines += ["", f"{title}: {what}", *([f"    {suggestion}"] if suggestion else [])]
        return clean("\n".join(lines))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the ids as JSON-serializable values, with API keys and passwords masked."""
        return {
            "ok": self.ok,
            "searched": self.searched,
            "chunks": self.chunks,
            "sampled": self.sampled,
            "sources": [_as_json(source) for source in self.sources],
            "notes": [{"what": clean(note.what), "suggestion": clean(note.suggestion)} for note in self.notes],
        }

    def _summary(self) -> str:
        if not self.chunks and not self.sampled:
            return f"{self.searched}: no chunks"
        read = counted(self.chunks, "chunk")
        found = f"{'the first ' if self.sampled else ''}{read} from {counted(len(self.sources), 'source')}"
        wrong = sum(bool(source.problem) for source in self.sources)
        verdict = f"problems in {counted(wrong, 'source')}" if wrong else "no problems found"
        return f"{self.searched}: {found}; {verdict}"

    def _findings(self) -> Iterator[tuple[str, str, str]]:
        """Yield each problem with its first source and the suggestion for it, then the notes."""
        alike: dict[str, list[SourceCheck]] = {}
        for source in self.sources:
            if source.problem:
                alike.setdefault(source.problem, []).append(source)
        for problem, (first, *others) in alike.items():
            more = f" and {counted(len(others), 'more source')}" if others else ""
            where = "" if first.source is None else f" ({shown_name(first.source)}{more})"
            yield "Problem", f"{problem}{where}", first.suggestion
        for note in self.notes:
            yield "Note", note.what, note.suggestion


def source_literal(name: str | None) -> str:
    """Return the name of a source as a string literal, or its hash if the literal would be shortened or masked."""
    literal = describe(name)
    exact = literal == repr(name) and clean(f"ids({literal})") == f"ids({literal})"
    return literal if exact else repr(_hash_of(name))


def _hash_of(name: str | None) -> str:
    return f"sha256:{sha256((name or '').encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def shown_name(name: str | None) -> str:
    """Return the name of a source for a table."""
    return "(not named)" if name is None else printable(shown(name, _NAME_WIDTH))


def source_table(summary: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a report: a summary, and a row for each of the first sources."""
    more = [f"and {counted(len(rows) - _MAX_ROWS, 'more source')}"] if len(rows) > _MAX_ROWS else []
    return [summary, "", *table(head, rows[:_MAX_ROWS]), *more] if rows else [summary]


def _as_json(source: SourceCheck) -> dict[str, Any]:
    plain = {name: value for name, value in vars(source).items() if name != "ids"}
    masked = {name: safe(shown(value, _NAME_IN_JSON)) for name, value in plain.items() if isinstance(value, str)}
    return {**plain, **masked, "kind": source.kind.name.lower()}


def _cells(source: SourceCheck) -> list[str]:
    return [
        "!" if source.problem else "",
        shown_name(source.source),
        f"{source.chunks:,}",
        kind_text(source.kind, source.field),
        source.certainty,
        f"{source.duplicates:,}" if source.duplicates else "",
    ]
