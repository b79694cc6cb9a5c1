"""Metrics of retrieved chunks and their order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from math import log2
from operator import index
from typing import Any

from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["evidence_coverage", "inverted_pairs", "mrr", "ndcg", "recall", "touching"]


def evidence_coverage(spans: Sequence[tuple[str, int, int]], evidence: Sequence[tuple[str, int, int]]) -> float | None:
    """Share of the gold evidence, in characters, that the retrieved spans cover.

    Each character counts once, even if several spans contain it. The order of spans is irrelevant.

    Args:
        spans: Retrieved spans (document, start, end), which may overlap: character offsets in the text of the document,
            `end` exclusive.
        evidence: Spans of the gold evidence in the same form.

    Returns:
        A value from 0 to 1; None if the evidence has no characters.

    Raises:
        OptionError: A span is not a triple, or its offsets are not integers with 0 <= start <= end.

    Example:
        >>> evidence_coverage([("book", 0, 100), ("book", 80, 200)], [("book", 150, 250), ("letter", 0, 100)])
        0.25
    """
    retrieved, gold = _characters("spans", spans), _characters("evidence", evidence)
    if not gold:
        return None
    return (retrieved + gold - _characters("spans", [*spans, *evidence])) / gold


def _characters(name: str, spans: Iterable[tuple[str, int, int]]) -> int:
    """Number of characters in the union of the spans."""
    of_document: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for span in spans:
        try:
            document, start, end = span
            start, end = index(start), index(end)
        except (TypeError, ValueError) as error:
            message = f"{name} must be triples (document, start, end) with integers as offsets, got {describe(span)}"
            raise OptionError(message, span) from error
        if not 0 <= start <= end:
            raise OptionError(f"{name} must have offsets with 0 <= start <= end, got {describe(span)}", span)
        of_document[document].append((start, end))
    count = 0
    for pairs in of_document.values():
        last = 0
        for start, end in sorted(pairs):
            count += max(0, end - max(start, last))
            last = max(last, end)
    return count


def touching(spans: Iterable[tuple[str, int, int]], evidence: Sequence[tuple[str, int, int]]) -> frozenset[int]:
    """Indices of the spans that overlap the evidence."""
    return frozenset(
        place
        for place, (document, start, end) in enumerate(spans)
        if any(gold == document and max(start, begin) < min(end, stop) for gold, begin, stop in evidence)
    )


def recall(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float | None:
    """Recall at k: share of the relevant chunks that were retrieved, with the k of the setting.

    Args:
        ranked: Identifiers of the retrieved chunks, such as rows of the index, best first.
        relevant: Identifiers of all relevant chunks.

    Returns:
        A value from 0 to 1; None without relevant chunks.

    Raises:
        OptionError: `ranked` has duplicates.

    Example:
        >>> recall([4, 7, 1], {7, 9})
        0.5
    """
    gains = _gains(ranked, relevant)
    return sum(gains) / len(relevant) if relevant else None


def mrr(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float | None:
    """Reciprocal rank of the first relevant chunk; its mean over questions is the MRR.

    Args:
        ranked: Identifiers of the retrieved chunks, such as rows of the index, best first.
        relevant: Identifiers of all relevant chunks.

    Returns:
        A value from 0 (no relevant chunk retrieved) to 1; None without relevant chunks.

    Raises:
        OptionError: `ranked` has duplicates.

    Example:
        >>> mrr([4, 7, 1], {7, 9})
        0.5
    """
    gains = _gains(ranked, relevant)
    if not relevant:
        return None
    return 1 / (gains.index(True) + 1) if True in gains else 0.0


def ndcg(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int | None = None) -> float | None:
    """Normalized discounted cumulative gain (Järvelin and Kekäläinen 2002) with binary relevance.

    A relevant chunk at rank r (from 1) contributes 1 / log2(r + 1); the sum is divided by that of the ideal ranking.

    Args:
        ranked: Identifiers of the retrieved chunks, such as rows of the index, best first.
        relevant: Identifiers of all relevant chunks.
        k: Number of ranks to consider, in the retrieved and in the ideal ranking; all by default.

    Returns:
        A value from 0 to 1; None without relevant chunks.

    Raises:
        OptionError: `ranked` has duplicates, or k is less than 1.

    Example:
        >>> round(ndcg([4, 7, 1], {7, 9}), 3)
        0.387
    """
    if k is not None and k < 1:
        raise OptionError(f"k must be at least 1, got {describe(k)}", k)
    gains = _gains(ranked, relevant)[:k]
    best = [True] * len(relevant)
    return _discounted(gains) / _discounted(best[:k]) if best else None


def _gains(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> list[bool]:
    if len(set(ranked)) != len(ranked):
        raise OptionError(f"ranked must not contain duplicates, got {describe(ranked)}", ranked)
    return [chunk in relevant for chunk in ranked]


def _discounted(gains: Iterable[bool]) -> float:
    return sum(1 / log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain)


def inverted_pairs(positions: Sequence[tuple[str, Any]]) -> float | None:
    """Share of chunk pairs of the same source that are not in source order.

    0 is source order, 1 its reverse, and a random order gives 0.5 on average: this is Kendall's tau distance divided by
    its maximum, pooled over the sources. Two chunks with the same position, such as two chunks of one page, are not a
    pair: no order can invert them, so counting them would move the average of random orders below 0.5.

    Args:
        positions: Source and position of each chunk, in the order in which the model reads them. Positions of one
            source must be comparable; chunks with the position None (unknown) are ignored.

    Returns:
        A value from 0 to 1; None if no source has two chunks with different positions.

    Raises:
        OptionError: An entry is not a pair, or positions of one source are not comparable.

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
        in_sequence: list[Any] = []
        for position in order:
            try:
                low, high = bisect_left(in_sequence, position), bisect_right(in_sequence, position)
            except TypeError as error:
                message = f"positions of one source must be comparable, in {describe(source)}: {error}"
                raise OptionError(message, order) from error
            pairs += len(in_sequence) - (high - low)
            inverted += len(in_sequence) - high
            # Insertion moves memory, which is negligible for the length of a context.
            in_sequence.insert(high, position)
    return inverted / pairs if pairs else None
