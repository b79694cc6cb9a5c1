"""Inverted pairs: how far a context stands from the order of its sources."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["inverted_pairs"]


def inverted_pairs(positions: Sequence[tuple[str, Any]]) -> float | None:
    """Of the pairs of chunks of one source, the share that stands against the order of the source.

    0 is the order of the source, 1 its reverse, and chance gives 0.5 on average: Kendall's distance over its most,
    pooled over the sources. Two chunks of which the source does not say which comes first, such as two with the same
    page as position, are no pair: no order could invert them, and chance would no longer be at 0.5.

    Args:
        positions: The source and the position of each chunk in the sequence in which the model reads them. Positions
            of one source can be compared with each other; None is an unknown one, and its chunk is left out.

    Returns:
        From 0 to 1; None where no two chunks have different positions in one source.

    Raises:
        OptionError: An entry is no such pair, or positions of one source cannot be compared or are NaN.

    Example:
        >>> inverted_pairs([("book", 7), ("letter", 1), ("book", 2), ("book", 9)])
        0.3333333333333333
    """
    of_source: defaultdict[str, list[Any]] = defaultdict(list)
    for entry in positions:
        try:
            source, position = entry
        except (TypeError, ValueError) as error:
            raise OptionError(f"positions must be pairs (source, position), got {describe(entry)}", entry) from error
        if position is not None:
            of_source[source].append(position)
    inverted = pairs = 0
    for source, order in of_source.items():
        try:
            if any(position != position for position in order):  # noqa: PLR0124 (NaN differs from itself)
                raise OptionError(f"positions must have an order, got NaN in the source {describe(source)}", order)
            in_sequence, against = _sorted(order)
        except TypeError as error:
            raise OptionError(
                f"positions of one source must be comparable, in {describe(source)}: {error}", order
            ) from error
        inverted += against
        pairs += _pairs(len(order)) - sum(_pairs(len(list(ties))) for _, ties in groupby(in_sequence))
    return inverted / pairs if pairs else None


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _sorted(order: list[Any]) -> tuple[list[Any], int]:
    """The positions in sequence, and how many pairs were not: each one stands before all higher ones seen so far."""
    in_sequence: list[Any] = []
    inverted = 0
    for position in order:
        place = bisect_right(in_sequence, position)
        inverted += len(in_sequence) - place
        # Moving what is behind it is one copy of memory, which no context is long enough to feel.
        in_sequence.insert(place, position)
    return in_sequence, inverted
