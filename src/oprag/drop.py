"""A chunk that was left out, and why."""

from typing import Literal, NamedTuple

from oprag.chunk import Chunk

__all__ = ["Drop", "DropReason"]

DropReason = Literal[
    "max_candidates",
    "duplicate",
    "on_missing_position",
    "similarity_threshold",
    "redundancy_threshold",
    "k",
    "token_budget",
]


class Drop(NamedTuple):
    """A retrieved chunk that is not in the context, and why.

    Attributes:
        chunk: The chunk.
        reason: The option that left it out, or "duplicate".
        figure: What decided: the limit for `max_candidates` and `k`, the rank of the kept twin for a duplicate, the
            cosine for a threshold, the tokens that the chunk needed for `token_budget`; None where there is none.
        detail: The same in words.
        twin: The rank of the better-ranked chunk that this one repeats, for a duplicate and for `redundancy_threshold`.
    """

    chunk: Chunk
    reason: DropReason
    figure: int | float | None
    detail: str
    twin: int | None = None
