"""The best setting: the highest one and whether that is shown, the economical one, and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oprag.compare.analysis.differences import ComparisonFamily, SettingDifference, against_highest, highest
from oprag.compare.analysis.settings import asks_model
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import assignments
from oprag.compare.stats.difference import Difference, paired_difference
from oprag.compare.stats.summary import Summary
from oprag.errors import OptionError

__all__ = ["Best", "best_of", "choose_economical", "pareto_front"]

_MOST_NAMED = 3  # others in a sentence
_ALIKE = 1.01
"""Settings with at most this many times the fewest tokens are alike: at one budget, orders differ by a few tokens."""
_OF_ALIKE = "; of those with as many tokens, to one part in a hundred, the one in source order"


@dataclass(frozen=True, kw_only=True)
class Best:
    """The setting with the highest score, and whether it is shown to be the best one.

    Attributes:
        metric: The metric.
        setting: The highest setting.
        others: The highest setting compared with each of the others (`baseline`), the nearest first.
        tied: The settings with the same score in every question, such as every order in `evidence_coverage`.
        comparisons: Number of comparisons that p-values are corrected for.
        axes: The axes in which settings differ.
    """

    metric: str
    setting: SettingSummary
    others: tuple[SettingDifference, ...] = field(repr=False)
    tied: tuple[SettingSummary, ...] = field(repr=False)
    comparisons: int
    axes: tuple[str, ...] = field(repr=False)

    @property
    def summary(self) -> Summary:
        """The scores of the setting."""
        return self.setting.scores[self.metric]

    @property
    def shown(self) -> bool:
        """Whether each of the others is shown to be worse; else another one might be highest with other questions."""
        return bool(self.others) and not self.rivals

    @property
    def rivals(self) -> tuple[SettingDifference, ...]:
        """The others that are not shown to be worse, the nearest first."""
        return tuple(other for other in self.others if not other.difference.shown_higher)

    def describe(self) -> str:
        """One sentence: the highest setting, and whether it is shown to be better than the others."""
        text = f"{self._named(self.setting)} has the highest {self.metric}, {self.summary.describe()}"
        if self.tied:
            text += f", tied in every question with {_listed([self._named(one) for one in self.tied])}"
        if not self.others:
            return text if self.tied else f"{text}, n = {self.summary.n:,}; there is nothing to compare it with"
        told = self.others[:1] if self.shown else self.rivals[:_MOST_NAMED]
        count, rivals = len(self.others), len(self.rivals)
        corrected = f" (p corrected for {self.comparisons:,} comparisons)" if self.comparisons > 1 else ""
        if count == 1:
            than = f"the other{corrected}: "
        elif self.shown:
            than = f"each of the {count:,} others{corrected}; the nearest is "
        else:
            than = f"{'any' if rivals == count else f'{rivals:,}'} of the {count:,} others{corrected}: "
        text += f", and is {'' if self.shown else 'not '}shown to be better than {than}"
        named = [f"{self._named(one.baseline)} ({one.describe()})" for one in told]
        return text + _listed(named, 0 if self.shown else rivals - len(told))

    def _named(self, setting: SettingSummary) -> str:
        return assignments(setting.values, self.axes) or "the only setting"


def _listed(texts: Sequence[str], more: int | None = None) -> str:
    """The first few, and how many more there are."""
    more = max(0, len(texts) - _MOST_NAMED) if more is None else more
    return "; ".join([*texts[:_MOST_NAMED], *([f"and {more:,} more"] if more else [])])


def best_of(settings: Sequence[SettingSummary], metric: str, *, axes: Sequence[str], family: ComparisonFamily) -> Best:
    """The setting with the highest score, compared with every other one, question by question.

    As for the points of a curve, it is shown to be better only if all paired differences have intervals above 0, and
    corrected p-values below 1 - confidence. Settings with the same score in every question cannot be told apart, and
    are not compared.

    Raises:
        OptionError: The metric has no scores.
    """
    scored = [setting for setting in settings if metric in setting.scores]
    if not scored:
        raise OptionError(f"there are no scores of {metric!r}", metric)
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
    """The setting that is worth deploying, and the reason in words.

    It is the one with the fewest tokens that is at most one standard error below the highest one.

    This is the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, Classification and Regression Trees,
    3.4.3), but with the standard error of the paired difference in place of that of the highest mean: all settings were
    asked the same questions. The tokens are those that the model read and wrote; without a model those of the context.
    Of settings with as many tokens, to one part in a hundred, it is the one in source order. The random order is a
    control, and is chosen only if there is nothing else.
    """
    # The score of a control is chance; what is deployed should be better.
    controls = [one for one in settings if one.values.get("order") == "random"]
    settings = [one for one in settings if one.values.get("order") != "random"] or settings
    scores = [one.by_question(metric) for one in settings]
    top = highest(scores)
    clusters = settings[top].matrix.clusters
    below = {
        number: paired_difference(scores[top], other, clusters) for number, other in enumerate(scores) if number != top
    }
    near = [one for number, one in enumerate(settings) if number == top or _is_near(below[number])]
    most = _ALIKE * min(map(_tokens, near))
    alike = [one for one in near if _tokens(one) <= most]
    chosen = min(alike, key=lambda one: (one.values.get("order") != "source", _tokens(one)))

    def score_at(setting: SettingSummary) -> str:
        return f"{setting.scores[metric].describe()} at {assignments(setting.values, axes)}"

    if chosen is not settings[top]:
        why = (
            f"the fewest tokens of {len(near)} settings that are below the highest {metric} "
            f"({score_at(settings[top])}) by at most one standard error of the difference"
        )
    elif any(one.low is not None for one in below.values()):
        why = f"the highest {metric}; those with fewer tokens are below it by more than one standard error"
    else:
        why = f"the highest {metric}; of so few questions nothing can be said of its error"
    if any(_tokens(one) < _tokens(chosen) for one in near):
        why += _OF_ALIKE
    if (chance := _higher_control(controls, settings[top], metric)) is not None:
        why += f"; the random order, a control, is higher still ({score_at(chance)})"
    return chosen, why


def _higher_control(controls: Sequence[SettingSummary], top: SettingSummary, metric: str) -> SettingSummary | None:
    """The control with the highest mean, if it is above that of the highest other setting."""
    best = max(controls, key=lambda one: one.scores[metric].mean or 0.0, default=top)
    return best if (best.scores[metric].mean or 0.0) > (top.scores[metric].mean or 0.0) else None


def _is_near(one: Difference) -> bool:
    """Whether it is as high as the highest, or below it by at most the standard error of the mean difference."""
    if one.mean is None or one.mean <= 0:
        return one.mean is not None
    # A 95 % interval has about 1.96 standard errors to each side.
    return one.low is not None and one.high is not None and one.mean <= (one.high - one.low) / (2 * 1.96)


def _tokens(setting: SettingSummary) -> float:
    """The tokens that a model read and wrote, or those of the context where none was asked."""
    return setting.cost("tokens" if asks_model(setting) else "context_tokens") or 0.0


def pareto_front(scores: Sequence[float], costs: Sequence[float]) -> list[int]:
    """The points for which no other one has a score as high at a cost as low, one of both better.

    It compares the numbers as they are: two points of the front need not be shown to differ. The indices of these
    points come with the cheapest first; all of equal points are included.

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
