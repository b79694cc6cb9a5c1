"""How sure oprag is of the order of a source, and whether it is right, over generated histories of stores.

Each seed makes a text, a splitter, metadata and what happened to the store (`tests.core.positions.histories`); random
subsets of the chunks are judged by the truth (`tests.core.positions.judging`).
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from benchmarks.result import Result, Table, markdown
from tests.core.positions.histories import Case, make_case
from tests.core.positions.judging import FAULTS, OUTCOMES, decide, inverted_pairs, judge

COUNT = 10_000
CERTAINTIES = ("known", "assumed", "unknown")
COLUMNS = (*CERTAINTIES, *OUTCOMES)
FIRST = 12  # seeds that are named for each fault


class Row(NamedTuple):
    """What the judge says about one seed."""

    seed: int
    style: str
    history: str
    listing: str
    counts: Mapping[str, int]


def measure(seed: int) -> Row:
    """Judge the case of a seed."""
    case = make_case(seed)
    certainty, outcomes = judge(case)
    history = "two of these" if " + " in case.history else case.history
    return Row(seed, case.style, history, case.listing, {**outcomes, certainty: 1})


def run(seeds: Sequence[int]) -> Result:
    """Judge all cases, on all processors."""
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(measure, seeds, chunksize=50))
    result = Result(
        "Histories of sources",
        f"{len(rows):,} sources by the certainty of their order, then random subsets of their chunks. Lied to: wrong "
        "and not said, because of a number that nothing could check. Unstable: sources whose order depends on that of "
        "a listing that is in no sequence.",
    )
    for name in ("style", "history", "listing"):
        sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            sums[getattr(row, name)].update(row.counts)
        lines = [*sorted(sums.items()), ("all", sum(sums.values(), Counter()))]
        cells = [[label, *(str(counts[column] or "–") for column in COLUMNS)] for label, counts in lines]
        result.tables.append(Table(f"By {name}:", (name, *COLUMNS), cells))
    for fault in FAULTS:
        faulty = [row for row in rows if row.counts.get(fault)]
        named = "; ".join(f"{row.seed} ({row.style}, {row.history}, {row.listing})" for row in faulty[:FIRST])
        result.notes.append(f"**{fault}: {len(faulty)} sources.** {named}".strip())
    return result


def describe_case(case: Case) -> str:
    """All that is known of a case, chunk by chunk, with what oprag and the judge say."""
    order = decide(case, case.chunks)
    numbers = range(len(case.entries))
    about: list[Any] = [
        case.style,
        case.history,
        case.listing,
        case.kind,
        case.splitter,
        f"text: {case.text is not None}",
    ]
    lines = [
        f"seed {case.seed}: {'; '.join(map(str, about))}",
        f"{order.certainty}; doubts: {[*order.doubts_among(numbers)]}; {dict(judge(case)[1])}",
    ]
    for number, (entry, place) in enumerate(zip(case.entries, order.places, strict=True)):
        fields = {name: value for name, value in entry.fields.items() if name not in ("metadata", "id")}
        about = [entry.metadata, *([fields] if fields else []), *(["lies"] if entry.lies else []), entry.piece.text]
        where = f"version {entry.piece.version}, true {entry.piece.place:5}, key {place.key}"
        lines.append(f"{number:3} {where:40} {', '.join(map(repr, about))}")
    inverted = [(one.piece.place, other.piece.place) for one, other in inverted_pairs(case, order, numbers)]
    return "\n".join([*lines, f"{len(inverted)} pairs are not in this order; the first: {inverted[:20]}"])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"number of histories; default: {COUNT:,}")
    parser.add_argument("--start", type=int, default=0, help="the first seed; default: 0")
    parser.add_argument("--seed", type=int, help="print one case instead")
    options = parser.parse_args()
    if options.seed is not None:
        print(describe_case(make_case(options.seed)))
    else:
        print(markdown(run(range(options.start, options.start + options.count))))


if __name__ == "__main__":
    main()
