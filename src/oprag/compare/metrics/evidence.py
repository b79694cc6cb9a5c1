"""Evidence coverage: how much of what the answer needs was retrieved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import index

from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["evidence_coverage"]


def evidence_coverage(spans: Sequence[tuple[str, int, int]], evidence: Sequence[tuple[str, int, int]]) -> float | None:
    """The share of the characters of the gold evidence that stands in the retrieved spans.

    A character counts once, however many spans of evidence or retrieved ones have it. Order plays no part.

    Args:
        spans: What was retrieved: (document, start, end), offsets of characters in the text of the document, `end`
            behind the last one. They may overlap.
        evidence: Where the answer stands, in the same way.

    Returns:
        From 0 to 1; None where the evidence has no character.

    Raises:
        OptionError: A span is no such triple, or its offsets are no whole numbers with 0 <= start <= end.

    Example:
        >>> evidence_coverage([("book", 0, 100), ("book", 80, 200)], [("book", 150, 250), ("letter", 0, 100)])
        0.25
    """
    retrieved, gold = _merged("spans", spans), _merged("evidence", evidence)
    size = sum(end - start for runs in gold.values() for start, end in runs)
    if not size:
        return None
    return sum(_common(runs, retrieved.get(document, [])) for document, runs in gold.items()) / size


def _merged(name: str, spans: Iterable[tuple[str, int, int]]) -> dict[str, list[tuple[int, int]]]:
    """The runs of characters in the spans of each document, in sequence and apart from each other."""
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
    merged: dict[str, list[tuple[int, int]]] = {}
    for document, pairs in of_document.items():
        runs = merged[document] = []
        for start, end in sorted(pairs):
            if runs and start <= runs[-1][1]:
                runs[-1] = runs[-1][0], max(runs[-1][1], end)
            else:
                runs.append((start, end))
    return merged


def _common(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> int:
    """How many characters are in runs of both."""
    common = here = there = 0
    while here < len(first) and there < len(second):
        start, end = max(first[here][0], second[there][0]), min(first[here][1], second[there][1])
        common += max(0, end - start)
        if first[here][1] <= second[there][1]:
            here += 1
        else:
            there += 1
    return common
