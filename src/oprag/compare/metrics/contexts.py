"""Metrics of retrieved chunks and their order."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import log2

__all__ = ["evidence_coverage", "inverted_pairs", "mrr", "ndcg", "recall", "touching"]

Span = tuple[str, int, int]
"""A document, and the start and end (exclusive) of a span of its characters."""


def evidence_coverage(spans: Iterable[Span], evidence: Sequence[Span]) -> float | None:
    """Share of the gold evidence, in characters, that the retrieved spans cover.

    Each character counts once, even if several spans contain it; None if the evidence has no characters.
    """
    spans = list(spans)
    gold = _characters(evidence)
    return (_characters(spans) + gold - _characters([*spans, *evidence])) / gold if gold else None


def _characters(spans: Iterable[Span]) -> int:
    """Number of characters in the union of the spans."""
    count, last, latest = 0, 0, None
    for document, start, end in sorted(spans):
        if document != latest:
            last, latest = 0, document
        count += max(0, end - max(start, last))
        last = max(last, end)
    return count


def touching(spans: Iterable[Span], evidence: Sequence[Span]) -> frozenset[int]:
    """Indices of the spans that overlap the evidence."""
    return frozenset(
        place
        for place, (document, start, end) in enumerate(spans)
        if any(gold == document and max(start, begin) < min(end, stop) for gold, begin, stop in evidence)
    )


def recall(ranked: Sequence[int], relevant: Collection[int]) -> float | None:
    """Recall at k: share of the relevant chunks that were retrieved, with the k of the setting.

    None without relevant chunks, as for `mrr` and `ndcg`.
    """
    return sum(chunk in relevant for chunk in ranked) / len(relevant) if relevant else None


def mrr(ranked: Sequence[int], relevant: Collection[int]) -> float | None:
    """Reciprocal rank of the first relevant chunk; its mean over questions is the MRR."""
    if not relevant:
        return None
    return next((1 / rank for rank, chunk in enumerate(ranked, 1) if chunk in relevant), 0.0)


def ndcg(ranked: Sequence[int], relevant: Collection[int], k: int | None = None) -> float | None:
    """Normalized discounted cumulative gain (Järvelin and Kekäläinen 2002) with binary relevance.

    A relevant chunk at rank r (from 1) contributes 1 / log2(r + 1); the sum over k ranks is divided by that of the
    ideal ranking.
    """
    if not relevant:
        return None
    ideal = len(relevant) if k is None else min(k, len(relevant))
    return _discounted(chunk in relevant for chunk in ranked[:k]) / _discounted([True] * ideal)


def _discounted(gains: Iterable[bool]) -> float:
    return sum(1 / log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain)


def inverted_pairs(positions: Iterable[tuple[str, int]]) -> float | None:
    """Share of chunk pairs of the same source that are not in source order.

    0 is source order, 1 its reverse, and a random order gives 0.5 on average: this is Kendall's tau distance divided by
    its maximum, pooled over the sources. Takes the source and position of each chunk, in the order in which the model
    reads them; None if no source has two chunks.
    """
    seen: defaultdict[str, list[int]] = defaultdict(list)
    inverted = pairs = 0
    for source, position in positions:
        earlier = seen[source]
        pairs += len(earlier)
        inverted += len(earlier) - bisect_right(earlier, position)
        insort(earlier, position)
    return inverted / pairs if pairs else None
