"""What can be said in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.html.comparisons import Comparisons, claimed
from oprag.compare.html.material import Material
from oprag.compare.html.parts import Points, Section
from oprag.compare.html.words import counted, interval, value_text
from oprag.compare.pairs import CellDifference
from oprag.compare.sweet_spot import SweetSpot

__all__ = ["section"]

_MOST_SPOTS = 3


def section(material: Material, comparisons: Comparisons, spots: Sequence[SweetSpot]) -> Section:
    """The summary."""
    return Section("summary", "In short", [Points([*_sentences(material, comparisons, spots)])])


def _sentences(material: Material, comparisons: Comparisons, spots: Sequence[SweetSpot]) -> Iterator[str]:
    answered = sum(row.answered for row in material.table)
    failed = sum(row.failed for row in material.table)
    left = sum(row.left for row in material.table)
    missing = f", {failed:,} failed" if failed else ""
    missing += f", {left:,} not tried" if left else ""
    questions = counted(len(material.results.clusters), "question")
    yield f"{questions} in {counted(len(material.table), 'setting')}: {counted(answered, 'answer')}{missing}."
    metric = material.metric
    if metric is None:
        yield "Nothing is scored."
        return
    scored = [row for row in material.table if metric in row.scores]
    if len(scored) > 1:
        best = max(scored, key=lambda row: row.scores[metric].mean or 0.0)
        yield (f"The highest mean {metric} is {interval(best.scores[metric])}, with {material.name(best.values)}.")
    for axis, pairs in comparisons.by_axis.items():
        yield _of_axis(axis, pairs)
    named = [spot for spot in spots if spot.best is not None]
    flat = len(spots) - len(named)
    told = named if len(spots) > _MOST_SPOTS else spots
    for spot in told[:_MOST_SPOTS]:
        yield f"{material.name(spot.values)}: {spot.describe()}."
    if len(spots) > _MOST_SPOTS:
        curves = counted(len(spots), "curve")
        yield (
            f"Of {curves} over the length of the context {flat:,} are flat, so that no length is shown to be the best; "
            f"{len(named) or 'none'} have a sweet spot."
        )


def _of_axis(axis: str, pairs: Sequence[CellDifference]) -> str:
    claims = sum(map(claimed, pairs))
    baseline = value_text(pairs[0].baseline)
    compared = counted(len(pairs), "comparison")
    if not claims:
        return f"{axis}: no difference from {baseline} can be claimed, in {compared}."
    higher = sum(claimed(pair) and (pair.difference.mean or 0.0) > 0 for pair in pairs)
    lower = claims - higher
    return (
        f"{axis}: of {compared} with {baseline}, {higher or 'none'} {'is' if higher == 1 else 'are'} shown to score "
        f"higher and {lower or 'none'} lower; of {len(pairs) - claims:,} nothing can be claimed."
    )
