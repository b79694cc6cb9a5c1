"""Keeping a context inside its token budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oprag.arrange import in_order
from oprag.assembly import Assembly
from oprag.chunk import Chunk
from oprag.errors import BudgetError
from oprag.render import render, with_header
from oprag.select import Drop
from oprag.stitch import Passage, each_alone, stitch
from oprag.tokens import count

__all__ = ["Layout", "fit", "lay_out"]


class Layout(NamedTuple):
    """Kept chunks in order, the passages made of them, and the text."""

    chunks: list[Chunk]
    passages: list[Passage]
    text: str


class Fit(NamedTuple):
    """What fits: the layout, its tokens, the tokens that its chunks were charged one by one, and what was left out."""

    layout: Layout
    tokens: int
    charged: int
    dropped: list[Drop]


def lay_out(chunks: Sequence[Chunk], assembly: Assembly) -> Layout:
    """Order, stitch and render; the chunks come best first."""
    ordered = in_order(chunks, assembly)
    passages = stitch(ordered, assembly.separator) if assembly.stitch else each_alone(ordered)
    return Layout(ordered, passages, render(passages, assembly))


def fit(chunks: Sequence[Chunk], assembly: Assembly, token_budget: int) -> Fit:
    """The best chunks whose rendered text has at most `token_budget` tokens.

    Best first, each chunk is charged its own text, header, gap and separator; one that does not fit is left out, and
    the walk goes on. What counts in the end is the rendered text: while that is over the budget (counters need not add
    up), the worst-ranked chunk goes. Tokens that stitching frees are not filled again.

    Args:
        chunks: Selected chunks, best first; at least one.
        assembly: The options.
        token_budget: The most tokens that the text may have.

    Raises:
        BudgetError: Not one chunk fits.
        TokenizerError: `count_tokens` gave no usable count.
    """
    charges = _charges(chunks, assembly)
    rest = list(zip(chunks, charges, strict=True))
    dropped: list[Drop] = []
    while rest:
        walked = _walk(rest, token_budget)
        kept = [pair for pair in rest if pair[0].rank not in walked]
        over: list[Drop] = []
        while kept:
            layout = lay_out([chunk for chunk, _ in kept], assembly)
            tokens = count(layout.text, assembly.count_tokens)
            if tokens <= token_budget:
                left_out = [*dropped, *walked.values(), *over]
                return Fit(layout, tokens, sum(charge for _, charge in kept), left_out)
            chunk, _ = kept.pop()
            detail = f"the rendered text had {tokens:,} tokens with it, {token_budget:,} are allowed"
            over.append(Drop(chunk, "token_budget", tokens, detail))
        # The counter charged these too little; without them there may be room for one that the walk left out.
        dropped += over
        gone = {drop.chunk.rank for drop in over}
        rest = [pair for pair in rest if pair[0].rank not in gone] if over else []
    smallest = min(charges)
    raise BudgetError(
        f"none of the {len(charges)} retrieved chunks fits token_budget={token_budget}: the smallest needs {smallest} "
        "tokens; raise the budget or split the sources into smaller chunks",
        token_budget,
    )


def _walk(charged: Sequence[tuple[Chunk, int]], token_budget: int) -> dict[int, Drop]:
    """The chunks, by rank, that are left out when the best are taken while they fit."""
    left = token_budget
    dropped: dict[int, Drop] = {}
    for chunk, charge in charged:
        if charge <= left:
            left -= charge
        else:
            detail = f"needs {charge:,} tokens, {left:,} of {token_budget:,} are left"
            dropped[chunk.rank] = Drop(chunk, "token_budget", charge, detail)
    return dropped


def _charges(chunks: Sequence[Chunk], assembly: Assembly) -> list[int]:
    """The tokens of each chunk as a passage of its own, with what may have to stand before it."""
    counter = assembly.count_tokens
    separator = count(assembly.separator, counter) if assembly.separator else 0
    gap = count(assembly.gap, counter) + separator if assembly.gap and assembly.order == "source" else 0
    charges: list[int] = []
    seen: set[str] = set()
    for passage in each_alone(chunks):
        charge = count(with_header(passage, assembly.header), counter)
        if charges:
            charge += separator
        if passage.source is not None:
            if passage.source in seen:
                charge += gap
            seen.add(passage.source)
        charges.append(charge)
    return charges
