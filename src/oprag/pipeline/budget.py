"""Fitting a context into its token budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from oprag._internal.tokens import count
from oprag.chunk import Chunk, Drop, Passage
from oprag.errors import BudgetError
from oprag.options import ContextOptions
from oprag.pipeline.order import in_order
from oprag.pipeline.render import SHOWN_SEPARATOR, Show, passages_of, render, with_header
from oprag.pipeline.stitch import each_alone

__all__ = ["fit"]


class Fit(NamedTuple):
    """The chunks that fit the budget, and the dropped ones."""

    kept: list[Chunk]  # the chunks that fit, in order
    passages: list[Passage]  # their passages
    tokens: int  # number of tokens of the rendered text
    charged: int  # sum of the tokens of the kept chunks, each counted separately
    dropped: list[Drop]  # the other chunks


def fit(
    chunks: Sequence[Chunk],
    options: ContextOptions,
    token_budget: int,
    show: Show | None = None,
    whole: Collection[str | None] = (),
) -> Fit:
    """Keep the best chunks whose rendered text has at most `token_budget` tokens.

    Best first, each chunk is charged for its own text, header, gap and separator; a chunk that does not fit is dropped,
    and the next one is tried. Then the rendered text is counted, since token counts need not add up: while it exceeds
    the budget, the last chunk is dropped. Tokens saved by stitching are not used for more chunks.

    The chunks of a source that is taken whole are charged together, with the best one; if they do not fit, only the
    selected ones are tried.
    """
    kept, charged, dropped = _take_fitting(chunks, options, token_budget, show, whole)
    while kept:
        ordered = in_order(kept, options)
        passages = passages_of(ordered, options)
        tokens = count(render(passages, options, show), options.count_tokens)
        if tokens <= token_budget:
            return Fit(ordered, passages, tokens, sum(charged[: len(kept)]), dropped)
        detail = f"the text with this chunk has {tokens:,} tokens, more than the budget of {token_budget:,}"
        dropped.append(Drop(kept.pop(), "token_budget", tokens, detail))
    smallest = min(int(drop.value or 0) for drop in dropped)
    raise BudgetError(
        f"none of the {len(chunks)} retrieved chunks fits token_budget={token_budget}: the smallest needs {smallest} "
        "tokens; raise the budget or split the sources into smaller chunks",
        token_budget,
    )


def _take_fitting(
    chunks: Sequence[Chunk],
    options: ContextOptions,
    token_budget: int,
    show: Show | None,
    whole: Collection[str | None],
) -> tuple[list[Chunk], list[int], list[Drop]]:
    """Take chunks, best first, that fit into the remaining budget; return them, their charges and the drops."""
    counter = options.count_tokens
    between = SHOWN_SEPARATOR if show is not None else options.separator
    separator = count(between, counter) if between else 0
    mark = options.gap if options.order == "source" and show is None else None
    gap = count(mark, counter) + separator if mark else 0
    texts = (with_header(passage, options.header) if show is None else show(passage) for passage in each_alone(chunks))
    pairs = list(zip(chunks, (count(text, counter) for text in texts), strict=True))
    kept: list[Chunk] = []
    charged: list[int] = []
    dropped: list[Drop] = []
    sources: set[str] = set()
    undecided = set(whole)
    settled: set[int] = set()
    left = token_budget
    for chunk, tokens in pairs:
        if chunk.rank in settled:
            continue
        if chunk.source in undecided:
            undecided.discard(chunk.source)
            unit = [pair for pair in pairs if pair[0].source == chunk.source]
            charges = [one + separator + gap for _, one in unit]
            charges[0] = tokens + (separator if kept else 0)
            fits = sum(charges) <= left
            # If they do not fit, the selected chunks come again, one by one.
            settled.update(one.rank for one, _ in unit if fits or one.neighbor_of is not None)
            if fits:
                left -= sum(charges)
                kept += [one for one, _ in unit]
                charged += charges
                continue
            detail = f"the whole source needs {sum(charges):,} tokens, only {left:,} of {token_budget:,} are left"
            added = (one for one, _ in unit if one.neighbor_of is not None)
            dropped += [Drop(one, "token_budget", sum(charges), detail) for one in added]
        charge = tokens
        if kept:
            charge += separator + (gap if chunk.source in sources else 0)
        if charge > left:
            detail = f"needs {charge:,} tokens, only {left:,} of {token_budget:,} are left"
            dropped.append(Drop(chunk, "token_budget", charge, detail))
            continue
        left -= charge
        kept.append(chunk)
        charged.append(charge)
        if chunk.source is not None:
            sources.add(chunk.source)
    return kept, charged, dropped
