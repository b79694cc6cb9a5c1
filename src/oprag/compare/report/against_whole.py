"""Retrieval against reading whole documents: the difference of their scores, question by question."""

from __future__ import annotations

from oprag.compare.analysis.wording import named
from oprag.compare.report.charts import Axis, histogram
from oprag.compare.report.material import Material
from oprag.compare.report.partners import nearest
from oprag.compare.report.parts import Figure, Part, Section, Table, Text

__all__ = ["section"]

_MOST_DRAWN, _MOST = 4, 60
_NEAREST = (
    " Whole documents were read in several settings; each of retrieval is held against the one that shares the most "
    "values with it."
)
_BINS = 21  # an odd number, so that one of them stands around 0


def section(material: Material) -> Section | None:
    """The histogram, where there are settings of `stuff` and of `long_context`."""
    metric = material.metric
    by_method = {
        method: [setting for setting in material.settings if setting.values["method"] == method]
        for method in ("stuff", "long_context")
    }
    if metric is None:
        return None
    found: dict[str, list[float]] = {}
    cut: dict[str, None] = {}
    pairs = [*nearest(by_method["stuff"], by_method["long_context"], ("data", "model"))]
    for (setting, whole), name in zip(pairs, material.names([setting for setting, _ in pairs]), strict=True):
        scores, of_whole = setting.scores(metric), whole.scores(metric)
        both = [scores[question] - of_whole[question] for question in scores if question in of_whole]
        if both:
            found[name] = both
            if whole.values.get("source_token_budget") is not None and whole.values.get("overflow") != "error":
                cut[named(whole.values, ("source_token_budget", "overflow"))] = None
    if not found:
        return None
    edges = _edges(max(abs(value) for values in found.values() for value in values))
    drawn = dict(list(found.items())[:_MOST_DRAWN])
    title = f"{metric} of retrieval minus that of whole documents"
    rows = [(name, *_counts(values)) for name, values in list(found.items())[:_MOST]]
    chart = histogram(
        edges,
        {name: _histogram(values, edges) for name, values in drawn.items()},
        title=title,
        description=". ".join(
            f"{name}: better {better}, the same {same}, worse {worse}"
            for name, _, _, better, same, worse in rows[:_MOST_DRAWN]
        )
        + ".",
        x=Axis("difference", "retrieval − whole documents"),
        y=Axis("questions", least=0),
    )
    parts: list[Part] = [
        Text(
            "Each question is answered once from what was retrieved (stuff) and once from its whole documents "
            "(long_context), by the same model. To the right of 0 retrieval is better."
            + (_NEAREST if len(by_method["long_context"]) > 1 else "")
        ),
        Figure(chart, f"The first {_MOST_DRAWN} settings of {len(found):,}" if len(found) > len(drawn) else ""),
        Table(
            "How many questions retrieval answers better, the same and worse",
            ("setting", "questions", "mean difference", "better", "the same", "worse"),
            rows,
            more=len(found) - len(rows),
        ),
    ]
    if cut:
        parts.append(
            Text(
                f"Not always whole: documents were cut to fit ({'; '.join(cut)}), so retrieval is compared with a part "
                "of the longer ones."
            )
        )
    return Section("whole", "Retrieval against whole documents", parts)


def _counts(values: list[float]) -> tuple[str, str, str, str, str]:
    better, worse = sum(value > 0 for value in values), sum(value < 0 for value in values)
    mean = sum(values) / len(values)
    return f"{len(values):,}", f"{mean:+z.3f}", f"{better:,}", f"{len(values) - better - worse:,}", f"{worse:,}"


def _edges(largest: float) -> list[float]:
    """The borders of the bins: a tenth of the range each, whatever the metric."""
    reach = 1.0 if largest <= 1 else largest
    width = 2 * reach / (_BINS - 1)
    return [-reach - width / 2 + number * width for number in range(_BINS + 1)]


def _histogram(values: list[float], edges: list[float]) -> list[int]:
    width = edges[1] - edges[0]
    counts = [0] * (len(edges) - 1)
    for value in values:
        counts[min(len(counts) - 1, max(0, int((value - edges[0]) / width)))] += 1
    return counts
