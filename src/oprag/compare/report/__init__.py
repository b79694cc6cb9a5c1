"""One HTML file that shows what an experiment found, and opens offline."""

from typing import TYPE_CHECKING

from oprag.lazy import loader

__all__ = ["write_report"]

_PLACES = {"write_report": "oprag.compare.report.write"}

if TYPE_CHECKING:
    from oprag.compare.report.write import write_report

__getattr__ = loader(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
