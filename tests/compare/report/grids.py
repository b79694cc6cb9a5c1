"""Experiments whose reports have everything in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from oprag.compare import DataSet
from oprag.compare.experiment import Experiment
from oprag.compare.running.run import run
from tests.compare.helpers import RecordingModel, experiment, keepers

__all__ = ["FULL", "full_experiment", "ran", "reader"]

FULL: list[dict[str, Any]] = [
    {
        "chunk_size": 16,
        "order": ["source", "rank"],
        "k": [1, 4, 16],
        "similarity_threshold": ["none", 0.3],
        "redundancy_threshold": ["none", 0.98],
    },
    {"chunk_size": 16, "method": ["self_route", "long_context"], "k": [1, 4]},
    {"method": "closed_book"},
]


def reader(text: str) -> str:
    """Who finds the answer where it stands, and else says that there is none."""
    asked = re.findall(r"Who is the keeper of the (\w+ number \d+)\?", text)
    found = re.search(rf"The keeper of the {re.escape(asked[-1])} is (\w+)\.", text) if asked else None
    if found is not None:
        return found[1]
    return "unanswerable" if "unanswerable" in text else "Nobody knows"


def full_experiment(**options: Any) -> Experiment:
    """Every section has something to show."""
    data: DataSet = options.pop("data", None) or keepers(documents=2, questions=5)
    return experiment(RecordingModel(reader), grid=FULL, data=data, **options)


def ran(wanted: Experiment, path: Path) -> Path:
    """The results file of an experiment that was run."""
    report = run(wanted, path)
    assert report.complete, report
    return path
