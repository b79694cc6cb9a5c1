"""Judges the order of a source by the truth of a case."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Any

from oprag.chunk import Chunk, changed
from oprag.positions.source_order import Listing, SourceOrder, order_of
from oprag.positions.source_text import SourceText
from tests.core.positions.histories import Case, Entry

__all__ = ["FAULTS", "KNOWN", "LIED", "OUTCOMES", "RIGHT", "SILENT", "UNSTABLE", "decide", "inverted_pairs", "judge"]

RIGHT, DOUBTED, SAID, SILENT, KNOWN = "right", "right, doubted", "wrong, said", "wrong, silent", "wrong, known"
LIED = "lied to"  # wrong and silent or known, because of a number that nothing could check
UNSTABLE = "unstable"  # the order depends on that of a listing whose order tells nothing
OUTCOMES = (RIGHT, DOUBTED, SAID, LIED, SILENT, KNOWN, UNSTABLE)
FAULTS = (SILENT, KNOWN, UNSTABLE)
SUBSETS, MAX_SUBSET = 6, 32


def decide(case: Case, chunks: Sequence[Chunk]) -> SourceOrder:
    """Ask oprag."""
    return order_of(
        Listing(chunks, case.in_sequence, case.complete, "Store"),
        text=None if case.text is None else SourceText(case.text),
    )


def judge(case: Case, decide: Callable[[Case, Sequence[Chunk]], Any] = decide) -> tuple[str, Counter[str]]:
    """The certainty of the order of all chunks, and the outcomes of random subsets; `UNSTABLE` is counted once."""
    chance = random.Random(case.seed)
    order = decide(case, case.chunks)
    count = len(case.chunks)
    subsets = [chance.sample(range(count), chance.randint(2, min(MAX_SUBSET, count))) for _ in range(SUBSETS)]
    outcomes = Counter(_outcome(case, order, subset) for subset in subsets)
    if not case.in_sequence:
        rows = chance.sample(range(count), count)
        again = decide(case, [changed(case.chunks[row], rank=rank) for rank, row in enumerate(rows)])
        outcomes[UNSTABLE] += not _is_equal(case, rows, order, again)
    return order.certainty, outcomes


def _outcome(case: Case, order: SourceOrder, subset: Collection[int]) -> str:
    wrong = inverted_pairs(case, order, subset)
    if wrong and order.certainty == "known":
        checked = case.complete or case.text is not None or case.style == "stamp"
        return LIED if checked and _is_lied_to(case, wrong) else KNOWN
    doubted = bool(order.doubts_among(subset))
    if wrong or not all(order.places[index].key for index in subset):
        return SAID if doubted else LIED if wrong and _is_lied_to(case, wrong) else SILENT
    return DOUBTED if doubted else RIGHT


def inverted_pairs(case: Case, order: SourceOrder, subset: Collection[int]) -> list[tuple[Entry, Entry]]:
    """The pairs with a true order that have another one, share a place, or have an unknown place."""
    found = []
    for first, second in combinations(sorted(subset, key=lambda index: case.entries[index].piece.place), 2):
        one, other = case.entries[first], case.entries[second]
        before, after = order.places[first].key, order.places[second].key
        if _has_order(one, other) and (not before or not after or before >= after):
            found.append((one, other))
    return found


def _has_order(one: Entry, other: Entry) -> bool:
    """Whether the true order is known: not of equal texts, nor of one that contains the other, nor of two versions."""
    same = one.piece.text == other.piece.text or one.piece.place == other.piece.place
    return not same and one.piece.version == other.piece.version


def _is_lied_to(case: Case, wrong: Sequence[tuple[Entry, Entry]]) -> bool:
    """Whether a number of each pair lies, and neither the sequence of the whole source nor its text refutes that.

    A sequence that workers mixed up refutes nothing, nor does a text in which the chunk occurs several times.
    """

    def lies(entry: Entry) -> bool:
        return entry.lies and (case.text is None or case.text.count(entry.piece.text) != 1)

    if "stamp by store" in case.style:
        # Written from the sequence by a call that confirmed it, or was told to trust it.
        return True
    in_sequence = case.complete and case.in_sequence and "workers" not in case.history
    return not in_sequence and all(lies(one) or lies(other) for one, other in wrong)


def _is_equal(case: Case, rows: Sequence[int], order: SourceOrder, again: SourceOrder) -> bool:
    """Whether two orders are equal but for chunks that are equal; where the order is unknown, rank may decide."""

    def standing(order: SourceOrder, rows: Sequence[int]) -> list[tuple[int, str, str]]:
        numbers = {key: number for number, key in enumerate(sorted({place.key for place in order.places}))}
        both = zip(order.places, (case.chunks[row] for row in rows), strict=True)
        return sorted((numbers[place.key], chunk.text, str(chunk.metadata)) for place, chunk in both)

    if order.certainty == again.certainty == "unknown":
        return True
    return order.certainty == again.certainty and standing(order, range(len(rows))) == standing(again, rows)
