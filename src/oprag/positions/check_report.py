"""The result of a position check, as a table for terminals and notebooks, and as JSON."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from typing import Any, NamedTuple

from oprag.chunk import PositionKind, counted
from oprag.errors import OptionError
from oprag.masking import clean, describe, safe, shown
from oprag.positions.readings import kind_text
from oprag.positions.source_order import Certainty
from oprag.text_table import escaped, html_table, printable, table

__all__ = ["Note", "PositionCheck", "SourceCheck", "source_literal"]

# The names of this package in suggested code.
_IMPORTED = re.compile(r"\b(?:\w+_positions|StampPositions|OrderPreservingRetriever)(?=\()")

_MAX_ROWS = 20  # sources in the table
_MAX_NAMES = 3  # sources in a message
_NAME_WIDTH = 40  # characters of a source name in the table
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
        remedy: A line of code that fixes the problem, tried on the listed chunks if it is about their order.
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
    remedy: str = ""
    ids: tuple[str, ...] = ()

    def __repr__(self) -> str:
        verdict = "a problem" if self.problem else "no problems"
        return f"SourceCheck({describe(self.source)}, {counted(self.chunks, 'chunk')}, {self.kind.name}, {verdict})"


class Note(NamedTuple):
    """A finding that does not affect the order.

    Attributes:
        what: A sentence.
        remedy: A line of code; may be empty.
    """

    what: str
    remedy: str = ""


@dataclass(frozen=True, repr=False)
class PositionCheck:
    """The findings about the order of the sources in a store or list; prints as a table, also in notebooks.

    Attributes:
        searched: Name of the store or list that was checked.
        sources: The sources, those with a problem first.
        chunks: Number of chunks that were read.
        total: Number of all chunks, if known.
        sampled: Whether only the first `max_chunks` chunks were read.
        partial_source: Name of the source that was dropped because the sample ends in the middle of it, or "" if none.
        notes: Findings that do not affect the order, such as duplicates.
        module: The module that the suggested code is imported from.
    """

    searched: str
    sources: tuple[SourceCheck, ...]
    chunks: int
    total: int | None = None
    sampled: bool = False
    partial_source: str = ""
    notes: tuple[Note, ...] = ()
    module: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """Whether no source has a problem: retrieval puts all of them in order without a warning."""
        return not any(source.problem for source in self.sources)

    def ids(self, source: str | None) -> list[str]:
        """Return the ids of the chunks of a source, for the store's `delete`.

        Args:
            source: The name of the source, or the hash that a suggested line of code contains in place of a name that
                is too long or contains secrets.

        Raises:
            OptionError: The source was not found, or not all chunks were read, so some of its ids may be missing.
        """
        if self.sampled:
            raise OptionError(
                f"only {self._read()} were read, so ids of this source may be missing; check again with a larger "
                "max_chunks",
                source,
            )
        named = [one for one in self.sources if source in (one.source, _hash_of(one.source))]
        if not named:
            names = [one.source for one in self.sources if one.source is not None]
            close = get_close_matches(source, names) if isinstance(source, str) else []
            known = ", ".join(map(describe, (close or names)[:_MAX_NAMES])) or "none"
            raise OptionError(f"the source {describe(source)} was not found; the check found {known}", source)
        return [key for one in named for key in one.ids]

    def __repr__(self) -> str:
        return f"PositionCheck({self._summary()})"

    def __str__(self) -> str:
        lines = [self._summary(), *(["", *table(*self._table(), indent="")] if self.sources else [])]
        if len(self.sources) > _MAX_ROWS:
            lines.append(f"and {counted(len(self.sources) - _MAX_ROWS, 'more source')}")
        for title, what, remedy in self._findings():
            lines += ["", f"{title}: {what}", *(f"    {line}" for line in remedy.splitlines())]
        return clean("\n".join(lines))

    def _repr_html_(self) -> str:
        hidden = len(self.sources) - _MAX_ROWS
        more = f"<p>and {counted(hidden, 'more source')}</p>" if hidden > 0 else ""
        findings = "".join(
            f"<p><b>{title}</b>: {escaped(what)}</p>" + (f"<pre>{escaped(remedy)}</pre>" if remedy else "")
            for title, what, remedy in self._findings()
        )
        return clean(f"<div>{html_table(self._summary(), *self._table())}{more}{findings}</div>")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the ids as JSON-serializable values, with API keys and passwords masked."""
        return {
            "ok": self.ok,
            "searched": self.searched,
            "chunks": self.chunks,
            "total": self.total,
            "sampled": self.sampled,
            "partial_source": safe(shown(self.partial_source, _NAME_IN_JSON)),
            "sources": [_as_json(source) for source in self.sources],
            "notes": [{"what": clean(note.what), "remedy": clean(note.remedy)} for note in self.notes],
        }

    def _summary(self) -> str:
        found = f"{self._read()} from {counted(len(self.sources), 'source')}"
        if self.partial_source:
            found += f", without {_shown(self.partial_source)}, which was read only in part"
        if not self.chunks and not self.sampled:
            return f"{self.searched}: no chunks"
        wrong = sum(bool(source.problem) for source in self.sources)
        verdict = f"problems in {counted(wrong, 'source')}" if wrong else "no problems found"
        return f"{self.searched}: {found}; {verdict}"

    def _read(self) -> str:
        """Describe which chunks were read."""
        read = counted(self.chunks, "chunk")
        if self.sampled:
            read = f"the first {read}" + ("" if self.total is None else f" of {self.total:,}")
        return read

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows, without columns that are empty for all sources."""
        shown = self.sources[:_MAX_ROWS]
        columns = [(head, [cell(source) for source in shown]) for head, cell in _COLUMNS]
        columns = [(head, cells) for head, cells in columns if head in _ALWAYS or any(cells)]
        return [head for head, _ in columns], [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]

    def _findings(self) -> list[tuple[str, str, str]]:
        """Return the problems and notes with their code, which starts with the imports of all of it."""
        findings = list(self._each_finding())
        names = sorted({name for _, _, remedy in findings for name in _IMPORTED.findall(remedy)})
        first = next((number for number, (_, _, remedy) in enumerate(findings) if remedy), 0)
        if self.module and names:
            title, what, remedy = findings[first]
            findings[first] = title, what, f"from {self.module} import {', '.join(names)}\n{remedy}"
        return findings

    def _each_finding(self) -> Iterator[tuple[str, str, str]]:
        """Yield each distinct problem with its sources and remedy, then the notes."""
        alike: dict[tuple[str, str], list[SourceCheck]] = {}
        for source in self.sources:
            if source.problem:
                remedy = source.remedy.replace(source_literal(source.source), "")
                alike.setdefault((source.problem, remedy), []).append(source)
        for (problem, _), sources in alike.items():
            others = f" and {counted(len(sources) - 1, 'more source')}" if len(sources) > 1 else ""
            where = "" if sources[0].source is None else f" ({_shown(sources[0].source)}{others})"
            yield "Problem", f"{problem}{where}", sources[0].remedy
        for note in self.notes:
            yield "Note", note.what, note.remedy


def source_literal(name: str | None) -> str:
    """Return the name of a source as a string literal; its hash if the literal would be shortened or masked."""
    shown = describe(name)
    try:
        exact = ast.literal_eval(shown) == name and clean(f"ids({shown})") == f"ids({shown})"
    except (SyntaxError, ValueError):
        exact = False
    return shown if exact else repr(_hash_of(name))


def _hash_of(name: str | None) -> str | None:
    return None if name is None else f"sha256:{sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _shown(name: str | None) -> str:
    return "(unknown)" if name is None else printable(shown(name, _NAME_WIDTH))


def _order_text(source: SourceCheck) -> str:
    """Return the number and name of the position kind, as in the documentation, and the fields that were read."""
    # Drop the name of the store, which the summary contains.
    return kind_text(
        source.kind, source.field.partition(", ")[2] if source.kind is PositionKind.STORE else source.field
    )


_COLUMNS: tuple[tuple[str, Callable[[SourceCheck], str]], ...] = (
    ("", lambda source: "!" if source.problem else ""),
    ("source", lambda source: _shown(source.source)),
    ("chunks", lambda source: f"{source.chunks:,}"),
    ("order by", _order_text),
    ("order", lambda source: source.certainty),
    ("without position", lambda source: f"{source.missing:,}" if source.missing else ""),
    ("duplicates", lambda source: f"{source.duplicates:,}" if source.duplicates else ""),
)
_ALWAYS = ("source", "chunks", "order by", "order")


def _as_json(source: SourceCheck) -> dict[str, Any]:
    plain = {name: value for name, value in vars(source).items() if name != "ids"}
    masked = {name: safe(shown(value, _NAME_IN_JSON)) for name, value in plain.items() if isinstance(value, str)}
    return {**plain, **masked, "kind": source.kind.name.lower()}
