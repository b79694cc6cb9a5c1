"""What can be said in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.best import best_of
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.summary import faults
from oprag.compare.analysis.wording import counted, value_text
from oprag.compare.report.comparisons import Comparisons, corrected
from oprag.compare.report.material import Material
from oprag.compare.report.page import Points, Section

__all__ = ["section"]

_MOST_SPOTS, _MOST_SETS = 3, 4


def section(material: Material, comparisons: Comparisons, spots: Sequence[Curve]) -> Section:
    """The summary."""
    return Section("summary", "In short", [Points([*_sentences(material, comparisons, spots)])])


def _sentences(material: Material, comparisons: Comparisons, spots: Sequence[Curve]) -> Iterator[str]:
    answered = sum(row.answered for row in material.settings)
    failed = sum(row.failed for row in material.settings)
    left = sum(row.left for row in material.settings)
    missing = f", {failed:,} failed" if failed else ""
    missing += f", {left:,} not tried" if left else ""
    questions = counted(len(material.results.matrix.questions), "question")
    yield f"{questions} in {counted(len(material.settings), 'setting')}: {counted(answered, 'answer')}{missing}."
    if faulty := faults(material.settings):
        yield f"{faulty[0].upper()}{faulty[1:]}. They are scored as they are, so what follows is about that as well."
    metric = material.metric
    if metric is None:
        yield "Nothing is scored."
        return
    for data, settings in list(material.by_data.items())[:_MOST_SETS]:
        if sum(metric in setting.scores for setting in settings) > 1:
            best = best_of(settings, metric, axes=material.differ, family=material.family)
            yield f"{f'{data}: ' if len(material.by_data) > 1 else ''}{best.describe()}."
    for axis, pairs in comparisons.by_axis.items():
        yield _of_axis(axis, pairs)
    named = [spot for spot in spots if spot.sweet_spot is not None]
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
    if material.family.comparisons > 1:
        yield f"p-values are {corrected(material)}"


def _of_axis(axis: str, pairs: Sequence[SettingDifference]) -> str:
    claims = sum(pair.difference.shown for pair in pairs)
    baseline = value_text(pairs[0].baseline_value)
    compared = counted(len(pairs), "comparison")
    if all(pair.difference.tied for pair in pairs):
        return f"{axis}: the same score as with {baseline} in every question, in {compared}."
    if not claims:
        return f"{axis}: no difference from {baseline} can be claimed, in {compared}."
    higher = sum(pair.difference.shown_higher for pair in pairs)
    lower = claims - higher
    left = f"; of {len(pairs) - claims:,} nothing can be claimed" if claims < len(pairs) else ""
    return (
        f"{axis}: of {compared} with {baseline}, {higher or 'none'} {'is' if higher == 1 else 'are'} shown to score "
        f"higher and {lower or 'none'} lower{left}."
    )
