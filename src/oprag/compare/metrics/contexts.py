"""Metrics of retrieved chunks and of their order."""

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
    """Share of the characters of the gold evidence that are in the retrieved spans.

    A character counts once, however many spans of evidence or retrieved ones have it. Order plays no part.

    Args:
        spans: The retrieved spans: (document, start, end), offsets of characters in the text of the document, `end`
            exclusive. They may overlap.
        evidence: The spans of the gold evidence, in the same form.

    Returns:
        From 0 to 1; None where the evidence has no character.

    Raises:
        OptionError: A span is not such a triple, or its offsets are not whole numbers with 0 <= start <= end.

    Example:
        >>> evidence_coverage([("book", 0, 100), ("book", 80, 200)], [("book", 150, 250), ("letter", 0, 100)])
        0.25
    """
    retrieved, gold = _characters("spans", spans), _characters("evidence", evidence)
    if not gold:
        return None
    return (retrieved + gold - _characters("spans", [*spans, *evidence])) / gold


def _characters(name: str, spans: Iterable[tuple[str, int, int]]) -> int:
    """The number of characters in the spans, each counted once."""
    of_document: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for span in spans:
        try:
            document, start, end = span
            start, end = index(start), index(end)
        except (TypeError, ValueError) as error:
            message = (
                f"{name} must be triples (document, start, end) with whole numbers as offsets, got {describe(span)}"
            )
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
    """The places, in their sequence, of the spans that have a character of the evidence."""
    return frozenset(
        place
        for place, (document, start, end) in enumerate(spans)
        if any(gold == document and max(start, begin) < min(end, stop) for gold, begin, stop in evidence)
    )


def recall(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float | None:
    """Share of the relevant chunks that were retrieved: recall at k, with the k of the setting.

    Args:
        ranked: The retrieved chunks, best first, each by what names it, such as its row in the index.
        relevant: Those of all chunks that are relevant.

    Returns:
        From 0 to 1; None where no chunk is relevant.

    Raises:
        OptionError: A chunk is retrieved twice.

    Example:
        >>> recall([4, 7, 1], {7, 9})
        0.5
    """
    gains = _gains(ranked, relevant)
    return sum(gains) / len(relevant) if relevant else None


def mrr(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float | None:
    """Reciprocal rank of the first relevant chunk; its mean over questions is the MRR.

    Args:
        ranked: The retrieved chunks, best first, each by what names it, such as its row in the index.
        relevant: Those of all chunks that are relevant.

    Returns:
        From 0, where no relevant one was retrieved, to 1; None where no chunk is relevant.

    Raises:
        OptionError: A chunk is retrieved twice.

    Example:
        >>> mrr([4, 7, 1], {7, 9})
        0.5
    """
    gains = _gains(ranked, relevant)
    if not relevant:
        return None
    return 1 / (gains.index(True) + 1) if True in gains else 0.0


def ndcg(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int | None = None) -> float | None:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002) with binary relevance.

    A relevant chunk at rank r, from 1, counts 1 / log2(r + 1); the sum is divided by that of the best ranking of k.

    Args:
        ranked: The retrieved chunks, best first, each by what names it, such as its row in the index.
        relevant: Those of all chunks that are relevant.
        k: Number of ranks that count, of the retrieved chunks and of the best ranking; all of them by default.

    Returns:
        From 0 to 1; None where no chunk is relevant.

    Raises:
        OptionError: A chunk is retrieved twice, or k is less than 1.

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
        raise OptionError(f"ranked must have each chunk once, got {describe(ranked)}", ranked)
    return [chunk in relevant for chunk in ranked]


def _discounted(gains: Iterable[bool]) -> float:
    return sum(1 / log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain)


def inverted_pairs(positions: Sequence[tuple[str, Any]]) -> float | None:
    """Share of the pairs of chunks of one source that are not in the order of the source.

    0 is the order of the source, 1 its reverse, and a random order gives 0.5 on average: Kendall's distance divided by
    its maximum, pooled over the sources. Two chunks with the same position, such as two of one page, are not a pair: no
    order could invert them, and a random order would no longer give 0.5.

    Args:
        positions: The source and the position of each chunk in the sequence in which the model reads them. Positions
            of one source can be compared with each other; None is an unknown one, and its chunk is left out.

    Returns:
        From 0 to 1; None where no two chunks have different positions in one source.

    Raises:
        OptionError: An entry is not such a pair, or positions of one source cannot be compared or are NaN.

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
            in_sequence: list[Any] = []
            for position in order:
                low, high = bisect_left(in_sequence, position), bisect_right(in_sequence, position)
                pairs += len(in_sequence) - (high - low)
                inverted += len(in_sequence) - high
                # Moving the later ones is one copy of memory, which no context is long enough to feel.
                in_sequence.insert(high, position)
        except TypeError as error:
            raise OptionError(
                f"positions of one source must be comparable, in {describe(source)}: {error}", order
            ) from error
    return inverted / pairs if pairs else None
