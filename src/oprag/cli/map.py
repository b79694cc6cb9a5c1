"""The command `oprag map`: shows where the kept and dropped chunks for a question are in the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

import typer
from rich.text import Text

from oprag.chunk import DropReason, counted
from oprag.cli.console import NAME_WIDTH, console, echo_json
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
from oprag.masking import safe, shown
from oprag.options import OP_RAG_16K, ContextOptions, check_question
from oprag.text_table import one_line

__all__ = ["KEPT", "SourceLine", "lines_of", "map_", "strip"]

KEPT = "kept"

# Glyphs: kept text in at least half of a cell; in less than half; one for each drop reason; not retrieved.
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
    """Show where in FILES the kept and dropped chunks for a QUESTION are.

    Keeps the same chunks as `oprag context`, but retrieves twice as many to show near misses, which are marked as
    dropped by max_candidates.
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


class SourceLine(NamedTuple):
    """A source and the character ranges of its kept and dropped chunks."""

    source: str
    length: int
    pages: int  # 0 for a source without pages
    marks: Sequence[tuple[int, int, str]]  # start, end, and "kept" or the drop reason

    def parts(self, states: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Yield disjoint (start, end, state) ranges; where chunks overlap, the state listed first wins."""
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


def lines_of(context: Context, lengths: Mapping[str, int | Sequence[int]]) -> tuple[list[SourceLine], dict[str, int]]:
    """Return a line for each source and the number of chunks in each state.

    Args:
        context: The context.
        lengths: Characters of each source, or of each of its pages.

    Returns:
        The lines, and the number of chunks in each state: "kept", then the drop reasons in the order in which they
        are applied.
    """
    chunks = [(chunk, KEPT) for chunk in context.kept] + [(drop.chunk, drop.reason) for drop in context.dropped]
    lines = []
    for name, length in lengths.items():
        pages = [length] if isinstance(length, int) else length
        begins = [0, *accumulate(pages)]
        marks = []
        for metadata, state in ((chunk.metadata, state) for chunk, state in chunks):
            # Compare the file's own name: with `source_key`, the chunk's source may be another.
            if metadata["source"] == name:
                begin = begins[metadata.get("page", 1) - 1]
                marks.append((begin + metadata["start_index"], begin + metadata["end_index"], state))
        lines.append(SourceLine(name, begins[-1], 0 if isinstance(length, int) else len(pages), marks))
    counts = Counter(state for _, state in chunks)
    return lines, {state: counts[state] for state in (KEPT, *get_args(DropReason)) if counts[state] or state == KEPT}


def strip(line: SourceLine, states: Sequence[str], width: int) -> Iterator[tuple[str, bool]]:
    """Yield the state of each of `width` cells ("" if nothing was retrieved) and whether it covers at least half.

    The state is "kept" if any text in the cell was kept, else the drop reason that covers most of it. Each cell covers
    at least one character, so a source shorter than the strip still fills it.
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
    """Print a legend, and for each source a strip as wide as the terminal."""
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
        name = one_line(safe(shown(line.source, NAME_WIDTH)))
        out.print(Text.assemble((name, "bold"), f"  {pages}{line.length:,} characters"))
        cells = ((looks[state], state == KEPT and not half) for state, half in strip(line, list(counts), out.width))
        out.print(Text.assemble(*((part if is_part else glyph, style) for (glyph, style), is_part in cells)))
        for start, end, state in line.parts(list(counts)):
            characters[state] += end - start
    length = sum(line.length for line in lines)
    characters[""] = length - characters.total()
    for state in (*counts, ""):
        what = {KEPT: KEPT, "": "not retrieved"}.get(state, f"dropped by {state}")
        chunks = f"{counted(counts[state], 'chunk')}, " if state else ""
        less = f" ({part} if less than half of the cell)" if state == KEPT else ""
        share = characters[state] / (length or 1)
        out.print(Text.assemble(looks[state], f" {what}: {chunks}{share:.1%} of the text{less}"))
