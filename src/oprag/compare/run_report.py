"""What a run did, and on what."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from oprag.compare.db.records import Spent
from oprag.compare.measure.usage import describe_cores

__all__ = ["Report", "versions"]


_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run did.

    Attributes:
        outcome: "complete", or why it ended before; a `LimitReached` where a limit stopped it.
        total: How many questions in cells the experiment has.
        answered: How many of them have an answer.
        failed: How many failed, by the class of the error.
        left: How many were not tried.
        broken: How many answers of earlier runs did not hold, since a reply was missing or changed; they were made
            again.
        spent: What all runs have spent on models.
        seconds: How long this run took.
    """

    outcome: str
    total: int
    answered: int
    failed: dict[str, int]
    left: int
    broken: int
    spent: Spent
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every question in every cell has an answer."""
        return self.answered == self.total


def versions() -> dict[str, str]:
    """What a run runs on."""
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": describe_cores(),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
