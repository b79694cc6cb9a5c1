"""What can be said about scores of a sample of questions: summaries, intervals, differences."""

from typing import TYPE_CHECKING

from oprag.lazy import loader

__all__ = ["Difference", "Summary", "holm", "mean_over", "paired_difference", "summarise"]

_PLACES = {
    "Difference": "oprag.compare.statistics.difference",
    "Summary": "oprag.compare.statistics.summary",
    "holm": "oprag.compare.statistics.family",
    "mean_over": "oprag.compare.statistics.seeds",
    "paired_difference": "oprag.compare.statistics.difference",
    "summarise": "oprag.compare.statistics.summary",
}

if TYPE_CHECKING:
    from oprag.compare.statistics.difference import Difference, paired_difference
    from oprag.compare.statistics.family import holm
    from oprag.compare.statistics.seeds import mean_over
    from oprag.compare.statistics.summary import Summary, summarise

__getattr__ = loader(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
