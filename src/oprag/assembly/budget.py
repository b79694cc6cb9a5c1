"""Keeping a context inside its token budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oprag.assembly.order import in_order
from oprag.assembly.render import SHOWN_SEPARATOR, Show, passages_of, render, with_header
from oprag.assembly.stitch import Passage, each_alone
from oprag.chunk import Chunk, Drop
from oprag.errors import BudgetError
from oprag.options import ContextOptions
from oprag.tokens import count

__all__ = ["fit"]

# Up to this many kept chunks, the text is counted again after each drop; above, half of the excess goes at once.
_ONE_BY_ONE = 256


class Fit(NamedTuple):
    """The chunks that fit, in order, with passages and tokens, what each alone was charged, and the others."""

    kept: list[Chunk]
    passages: list[Passage]
    tokens: int
    charged: int
    dropped: list[Drop]


def fit(chunks: Sequence[Chunk], options: ContextOptions, token_budget: int, show: Show | None = None) -> Fit:
    """The best chunks whose rendered text has at most `token_budget` tokens.

    Best first, each chunk is charged its own text, header, gap and separator; one that does not fit is dropped, and
    the walk goes on. The rendered text decides in the end: while that is over the budget (counters need not add
    up), the worst-ranked chunk goes. Tokens that stitching frees are not filled again.
    """
    kept, charged, dropped = _walk(chunks, options, token_budget, show)
    while kept:
        ordered = in_order(kept, options)
        passages = passages_of(ordered, options)
        tokens = count(render(passages, options, show), options.count_tokens)
        if tokens <= token_budget:
            return Fit(ordered, passages, tokens, sum(charged[: len(kept)]), dropped)
        # Long lists with a counter that charges far too little would take quadratic time one by one.
        excess = int(len(kept) * (1 - token_budget / tokens) / 2) if len(kept) > _ONE_BY_ONE else 0
        detail = f"the rendered text had {tokens:,} tokens with it, {token_budget:,} are allowed"
        dropped += [Drop(kept.pop(), "token_budget", tokens, detail) for _ in range(max(1, excess))]
    smallest = min(int(drop.figure or 0) for drop in dropped)
    raise BudgetError(
        f"none of the {len(chunks)} retrieved chunks fits token_budget={token_budget}: the smallest needs {smallest} "
        "tokens; raise the budget or split the sources into smaller chunks",
        token_budget,
    )


def _walk(
    chunks: Sequence[Chunk], options: ContextOptions, token_budget: int, show: Show | None
) -> tuple[list[Chunk], list[int], list[Drop]]:
    """Take the best chunks while they fit."""
    counter = options.count_tokens
    between = SHOWN_SEPARATOR if show is not None else options.separator
    separator = count(between, counter) if between else 0
    mark = options.gap if options.order == "source" and show is None else None
    gap = count(mark, counter) + separator if mark else 0
    kept: list[Chunk] = []
    charged: list[int] = []
    dropped: list[Drop] = []
    sources: set[str] = set()
    left = token_budget
    for chunk, passage in zip(chunks, each_alone(chunks), strict=True):
        text = with_header(passage, options.header) if show is None else show(passage)
        charge = count(text, counter)
        if kept:
            charge += separator + (gap if chunk.source in sources else 0)
        if charge > left:
            detail = f"needs {charge:,} tokens, {left:,} of {token_budget:,} are left"
            dropped.append(Drop(chunk, "token_budget", charge, detail))
            continue
        left -= charge
        kept.append(chunk)
        charged.append(charge)
        if chunk.source is not None:
            sources.add(chunk.source)
    return kept, charged, dropped
