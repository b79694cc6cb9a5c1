"""The text of search results in a prompt: only what is new in each, or everything in the last one."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

from oprag.agents.memory import Memory, Search
from oprag.agents.numbered_text import NOTHING, VisibleText, Written, head_of, omitted, pointer, write_result
from oprag.agents.search_result_blocks import numbered_blocks
from oprag.agents.whole_context import write_combined
from oprag.chunk import Chunk, changed
from oprag.errors import OptionError
from oprag.options import ContextOptions, check_choice, check_count
from oprag.pipeline.stitch import span_in_source

__all__ = ["Layout", "as_content", "check_layout", "write_compact", "write_delta", "write_deltas"]

Layout = Literal["delta", "compact"]

_COMPACTED = "(shown in source order in the last search result)"


def check_layout(layout: Any, compact_above: Any) -> None:
    """Reject an unknown layout, and an invalid or unused `compact_above`."""
    check_choice("layout", layout, get_args(Layout))
    check_count("compact_above", compact_above, optional=False, minimum=0)
    if compact_above and layout != "compact":
        raise OptionError(
            f'compact_above={compact_above} requires layout="compact", got layout="{layout}"; set layout="compact" or '
            "remove compact_above",
            compact_above,
        )


def write_delta(memory: Memory, options: ContextOptions, search: Search, visible: VisibleText, used: int) -> Written:
    """Write what is new in a result, beside visible text and results with this number of tokens."""
    room = None if options.token_budget is None else max(0, options.token_budget - used)
    ranks = dict(search.found)

    def head(number: int, chunk: Chunk) -> str:
        span = span_in_source(memory.placed[number - 1].span)
        if options.header is not None or span is not chunk.span:
            chunk = changed(chunk, rank=ranks[number], span=span)
        return head_of(options, number, chunk)

    found = {number: memory.placed[number - 1] for number in ranks}
    return write_result(found, ranks, head, visible, options, room=room, note=search.note)


def write_deltas(
    memory: Memory, options: ContextOptions, searches: Iterable[Search]
) -> Iterator[tuple[Search, Written]]:
    """Write what is new in each result, beside those before it."""
    visible, tokens = VisibleText(), 0
    for search in searches:
        written = write_delta(memory, options, search, visible, tokens)
        visible.show(written.shown, memory.placed)
        tokens += written.tokens
        yield search, written


def write_compact(
    memory: Memory, options: ContextOptions, searches: Sequence[Search], *, redacted: Collection[str]
) -> Iterator[tuple[Search, Written]]:
    """Write pointers for all searches except the last unchanged one, which has the chunks of all unchanged ones.

    Those of `redacted`, whose text in the prompt was changed, are not shown.
    """
    unchanged = [search for search in searches if search.name not in redacted]
    hidden = {number for search in searches if search.name in redacted for number, _ in search.found}
    found = set().union(*(dict(search.found) for search in unchanged)) - hidden
    note = unchanged[-1].note if unchanged else ""
    written = write_combined(memory, options, found, note)
    shown, over_budget = set(written.shown), set(written.over_budget)
    for search in searches:
        if unchanged and search is unchanged[-1] and found:
            yield search, written
            continue
        numbers = [number for number, _ in search.found]
        if labels := [number for number in numbers if number in shown]:
            line = pointer(labels, _COMPACTED)
        elif seen := [number for number in numbers if number in hidden]:
            line = pointer(seen)
        elif over_budget.intersection(numbers):
            line = omitted(len(numbers))
        else:
            # Other passages contain them.
            line = _COMPACTED if numbers else NOTHING
        yield search, Written("", [], []).with_lines(line, search.note)


def as_content(memory: Memory, search: Search, written: Written) -> str | list[dict[str, Any]]:
    """A result in the form of its search."""
    if not search.blocks:
        return written.text
    sources = {part.number: memory.chunks[part.number - 1].source for part in written.parts if part.number}
    return numbered_blocks(written.parts, sources)
