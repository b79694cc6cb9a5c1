"""The command `oprag map`: where in the files the kept and the dropped chunks of a question lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

import typer
from rich.text import Text

from oprag.chunk import DropReason, counted
from oprag.cli.console import console, echo_json
from oprag.cli.index import context_of, read_sources
from oprag.cli.options import (
    AsJson,
    Explain,
    Files,
    Indexing,
    ProfilePath,
    Question,
    TypedOptions,
    context_options_of,
    typed_options,
)
from oprag.context import Context
from oprag.masking import safe
from oprag.options import OP_RAG_16K, ContextOptions, check_question

__all__ = ["KEPT", "Line", "lines_of", "map_", "strip"]

KEPT = "kept"

# What is kept in half of a cell or more, and in less; then reasons as they come; then what was not retrieved.
_BLOCKS = ("█", "▄", "▒░▚▪▫◆◇○", "·")
_ASCII = ("#", "=", "xo%+*@&$", ".")
_STYLES = ("yellow", "blue", "red", "magenta", "cyan", "bright_yellow", "bright_blue")


@typed_options("options", ContextOptions, defaults=OP_RAG_16K)
@typed_options("indexed", Indexing)
def map_(
    options: TypedOptions,
    indexed: TypedOptions,
    files: Files,
    question: Question,
    profile: ProfilePath = None,
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Show where in FILES the passages lie that fit a QUESTION, and where those that were dropped.

    Keeps what `oprag context` keeps, but retrieves twice as many chunks: the second half, dropped by max_candidates,
    is what came close.
    """
    check_question(question)
    context_options, indexing = context_options_of(options, profile), indexed.value()
    sources = read_sources(files, indexing)
    result = context_of(question, sources, context_options, indexing, beyond=True)
    lengths = {name: len(text) if isinstance(text, str) else [*map(len, text)] for name, text in sources.items()}
    if as_json:
        echo_json({"question": question, **result.to_dict(), "lengths": lengths})
        return
    _show(result, lengths)
    if explain:
        typer.echo(f"\n{result.explain()}")


class Line(NamedTuple):
    """A source, from its first character to its last, and where chunks of it were kept or dropped."""

    source: str
    length: int
    pages: int  # 0 for a source without pages
    marks: Sequence[tuple[int, int, str]]  # start, end, and "kept" or the reason

    def parts(self, states: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """The parts that have chunks, one after another; where chunks overlap the first state counts."""
        borders = []
        for start, end, state in self.marks:
            borders += [(start, 1, states.index(state)), (end, -1, states.index(state))]
        open_marks = [0] * len(states)
        last = 0
        for place, step, number in sorted(borders):
            if last < place and any(open_marks):
                yield last, place, next(state for state, count in zip(states, open_marks, strict=True) if count)
            last = place
            open_marks[number] += step


def lines_of(context: Context, lengths: Mapping[str, int | Sequence[int]]) -> tuple[list[Line], dict[str, int]]:
    """A line for each source, given its length or those of its pages, and the number of chunks in each state.

    The states are "kept", then the reasons in the sequence in which they are applied.
    """
    chunks = [(chunk, KEPT) for chunk in context.kept] + [(drop.chunk, drop.reason) for drop in context.dropped]
    lines = []
    for name, length in lengths.items():
        pages = [length] if isinstance(length, int) else length
        begins = [0, *accumulate(pages)]
        marks = []
        for metadata, state in ((chunk.metadata, state) for chunk, state in chunks):
            # `source_key` may have made another source of a chunk.
            if metadata["source"] == name:
                begin = begins[metadata.get("page", 1) - 1]
                marks.append((begin + metadata["start_index"], begin + metadata["end_index"], state))
        lines.append(Line(name, begins[-1], 0 if isinstance(length, int) else len(pages), marks))
    counts = Counter(state for _, state in chunks)
    return lines, {state: counts[state] for state in (KEPT, *get_args(DropReason)) if counts[state] or state == KEPT}


def strip(line: Line, states: Sequence[str], width: int) -> Iterator[tuple[str, bool]]:
    """The state of each cell of a terminal, "" for nothing, and whether that is half of the cell or more.

    It is "kept" where anything was kept, else the reason for which most was dropped. A source that is shorter than the
    strip has no empty cells.
    """
    parts = list(line.parts(states))
    for number in range(width):
        begin = number * line.length // width
        end = max(begin + 1, (number + 1) * line.length // width)
        found: Counter[str] = Counter()
        for start, stop, state in parts:
            if start < end and begin < stop:
                found[state] += min(end, stop) - max(begin, start)
        state = KEPT if found[KEPT] else max(found, key=found.__getitem__, default="")
        yield state, 2 * found[state] >= end - begin


def _show(context: Context, lengths: Mapping[str, int | Sequence[int]]) -> None:
    """Print a strip for each source, as wide as the terminal, and a legend."""
    out = console()
    lines, counts = lines_of(context, lengths)
    kept, part, dropped, nothing = _ASCII if out.options.ascii_only else _BLOCKS
    reasons = [state for state in counts if state != KEPT]
    looks = {KEPT: (kept, "green"), "": (nothing, "dim")} | {
        reason: (dropped[n % len(dropped)], _STYLES[n % len(_STYLES)]) for n, reason in enumerate(reasons)
    }
    characters: Counter[str] = Counter()
    for line in lines:
        pages = f"{line.pages:,} pages, " if line.pages else ""
        out.print(Text.assemble((safe(line.source).replace("\n", " "), "bold"), f"  {pages}{line.length:,} characters"))
        cells = ((looks[state], state == KEPT and not half) for state, half in strip(line, list(counts), out.width))
        out.print(Text.assemble(*((part if is_part else glyph, style) for (glyph, style), is_part in cells)))
        for start, end, state in line.parts(list(counts)):
            characters[state] += end - start
    length = sum(line.length for line in lines)
    characters[""] = length - characters.total()
    for state in (*counts, ""):
        what = {KEPT: KEPT, "": "not retrieved"}.get(state, f"dropped by {state}")
        chunks = f"{counted(counts[state], 'chunk')}, " if state else ""
        less = f" ({part} where it is less than half)" if state == KEPT else ""
        share = characters[state] / (length or 1)
        out.print(Text.assemble(looks[state], f" {what}: {chunks}{share:.1%} of the text{less}"))
