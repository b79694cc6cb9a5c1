"""The best setting: the highest by score, the most economical, and the Pareto front of score and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isinf

from oprag.compare.analysis.differences import ComparisonFamily, SettingDifference, against_highest, highest
from oprag.compare.analysis.settings import asks_model
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import assignments
from oprag.compare.stats.difference import Difference, paired_difference
from oprag.compare.stats.summary import Summary
from oprag.errors import OptionError

__all__ = ["Best", "best_of", "choose_economical", "pareto_front"]

_MAX_NAMED = 3  # other settings listed in a sentence
_TOKEN_TOLERANCE = 1.01
"""Factor up to which token counts are treated as equal: within one token budget, orders differ by a few tokens."""
_PREFERS_SOURCE = "; among those within 1 % of the fewest tokens, the one in source order"


@dataclass(frozen=True, kw_only=True)
class Best:
    """The setting with the highest score, and whether it is significantly better than the others.

    Attributes:
        metric: The metric.
        setting: The highest setting.
        others: The highest setting compared with each of the others (`baseline`), smallest difference first.
        tied: Settings with the same score in every question, such as all orders in `evidence_coverage`.
        comparisons: Number of comparisons that p-values are corrected for.
        axes: Axes in which settings differ.
    """

    metric: str
    setting: SettingSummary
    others: tuple[SettingDifference, ...] = field(repr=False)
    tied: tuple[SettingSummary, ...] = field(repr=False)
    comparisons: int
    axes: tuple[str, ...] = field(repr=False)

    @property
    def summary(self) -> Summary:
        """Scores of the setting."""
        return self.setting.scores[self.metric]

    @property
    def significant(self) -> bool:
        """Whether every other setting is significantly worse; if not, other questions might yield another highest."""
        return bool(self.others) and not self.rivals

    @property
    def rivals(self) -> tuple[SettingDifference, ...]:
        """The other settings that are not significantly worse, smallest difference first."""
        return tuple(other for other in self.others if not other.difference.significantly_higher)

    def describe(self) -> str:
        """One sentence: the highest setting, and whether it is significantly better than the others."""
        text = f"{self._named(self.setting)} has the highest {self.metric}, {self.summary.describe()}"
        if self.tied:
            text += f", tied on every question with {_listed([self._named(one) for one in self.tied])}"
        if not self.others:
            return (
                text if self.tied else f"{text}, n = {self.summary.n:,}; there is no other setting to compare it with"
            )
        named = self.others[:1] if self.significant else self.rivals[:_MAX_NAMED]
        count, rivals = len(self.others), len(self.rivals)
        corrected = f" (p corrected for {self.comparisons:,} comparisons)" if self.comparisons > 1 else ""
        if count == 1:
            than = f"the other{corrected}: "
        elif self.significant:
            than = f"each of the {count:,} others{corrected}; the closest is "
        else:
            than = f"{'any' if rivals == count else f'{rivals:,}'} of the {count:,} others{corrected}: "
        text += f", and is {'' if self.significant else 'not '}significantly better than {than}"
        texts = [f"{self._named(one.baseline)} ({one.describe()})" for one in named]
        return text + _listed(texts, 0 if self.significant else rivals - len(named))

    def _named(self, setting: SettingSummary) -> str:
        return assignments(setting.values, self.axes) or "the only setting"


def _listed(texts: Sequence[str], more: int | None = None) -> str:
    """The first few texts, and the number of the others."""
    more = max(0, len(texts) - _MAX_NAMED) if more is None else more
    return "; ".join([*texts[:_MAX_NAMED], *([f"and {more:,} more"] if more else [])])


def best_of(settings: Sequence[SettingSummary], metric: str, *, axes: Sequence[str], family: ComparisonFamily) -> Best:
    """The setting with the highest score, compared with every other one, question by question.

    As for the points of a curve, it is significantly better only if the intervals of all paired differences are above 0
    and all corrected p-values are below 1 - confidence. Settings with the same score in every question are
    indistinguishable and are not compared.

    Raises:
        OptionError: The metric has no scores.
    """
    scored = [setting for setting in settings if metric in setting.scores]
    if not scored:
        raise OptionError(f"no setting has scores for {metric!r}", metric)
    top, found = against_highest(scored, metric, family)
    others = sorted(
        (one for one in found if not one.difference.tied),
        key=lambda one: -1.0 if one.difference.mean is None else one.difference.mean,
    )
    return Best(
        metric=metric,
        setting=top,
        others=tuple(others),
        tied=tuple(one.baseline for one in found if one.difference.tied),
        comparisons=family.comparisons,
        axes=tuple(axes),
    )


def choose_economical(
    settings: Sequence[SettingSummary], metric: str, *, axes: Sequence[str]
) -> tuple[SettingSummary, str]:
    """The setting worth deploying, with the reason in words.

    It has the fewest tokens of all settings that are at most one standard error below the highest one.

    This is the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, Classification and Regression Trees,
    3.4.3), with the standard error of the paired difference instead of that of the highest mean, since all settings
    answer the same questions. Tokens are the model's input plus output tokens, or the context tokens if no model is
    used. Among settings within 1 % of the fewest tokens, source order is preferred. Random order is a control, and is
    chosen only if there is nothing else.
    """
    # The score of a random order is due to chance, so recommend it only if there is nothing else.
    controls = [one for one in settings if one.values.get("order") == "random"]
    settings = [one for one in settings if one.values.get("order") != "random"] or settings
    scores = [one.by_question(metric) for one in settings]
    top = highest(scores)
    clusters = settings[top].matrix.clusters
    below = {
        number: paired_difference(scores[top], other, clusters) for number, other in enumerate(scores) if number != top
    }
    near = [one for number, one in enumerate(settings) if number == top or _is_near(below[number])]
    limit = _TOKEN_TOLERANCE * min(map(_tokens, near))
    alike = [one for one in near if _tokens(one) <= limit]
    chosen = min(alike, key=lambda one: (one.values.get("order") != "source", _tokens(one)))

    def score_at(setting: SettingSummary) -> str:
        return f"{setting.scores[metric].describe()} at {assignments(setting.values, axes)}"

    if chosen is not settings[top]:
        why = (
            f"the fewest tokens of the {len(near)} settings within one standard error (of the paired difference) of "
            f"the highest {metric} ({score_at(settings[top])})"
        )
    elif len(near) > 1 and not isinf(_tokens(chosen)):
        why = f"the highest {metric}; none of the settings within one standard error of it has fewer tokens"
    elif len(near) > 1:
        why = f"the highest {metric}, and the first of those within one standard error of it"
    elif any(one.low is not None for one in below.values()):
        why = f"the highest {metric}; settings with fewer tokens score lower by more than one standard error"
    else:
        why = f"the highest {metric}; there are too few questions to estimate a standard error"
    if isinf(_tokens(chosen)):
        why += "; its tokens are unknown"
    if any(_tokens(one) < _tokens(chosen) for one in near):
        why += _PREFERS_SOURCE
    if (chance := _higher_control(controls, settings[top], metric)) is not None:
        why += f"; random order, a control, scores even higher ({score_at(chance)})"
    return chosen, why


def _higher_control(controls: Sequence[SettingSummary], top: SettingSummary, metric: str) -> SettingSummary | None:
    """The control with the highest mean, if that is above the mean of the highest other setting."""
    best = max(controls, key=lambda one: one.scores[metric].mean or 0.0, default=top)
    return best if (best.scores[metric].mean or 0.0) > (top.scores[metric].mean or 0.0) else None


def _is_near(one: Difference) -> bool:
    """Whether the highest setting is above it by at most one standard error of the mean difference."""
    if one.mean is None or one.mean <= 0:
        return one.mean is not None
    # A 95 % interval extends about 1.96 standard errors to each side.
    return one.low is not None and one.high is not None and one.mean <= (one.high - one.low) / (2 * 1.96)


def _tokens(setting: SettingSummary) -> float:
    """Input plus output tokens of the model, or context tokens if no model is used; infinite if unknown."""
    cost = setting.cost("tokens" if asks_model(setting) else "context_tokens")
    return inf if cost is None else cost


def pareto_front(scores: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Indices of the points that no other point dominates, cheapest first.

    A point dominates another if its score is at least as high and its cost at least as low, and one of both is better.
    Numbers are compared without intervals: two points of the front need not differ significantly. Equal points are
    either all included or all left out.

    Example:
        >>> pareto_front(scores=[0.5, 0.4, 0.7, 0.6], costs=[10, 20, 90, 40])
        [0, 3, 2]
    """
    front: list[int] = []
    for place in sorted(range(len(scores)), key=lambda number: (costs[number], -scores[number])):
        last = front[-1] if front else None
        if last is None or scores[place] > scores[last] or (scores[place], costs[place]) == (scores[last], costs[last]):
            front.append(place)
    return front
