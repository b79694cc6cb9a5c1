"""Size of the HTML report of 10,000 answers, and the time to write and open it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.language_reference import language_reference
from benchmarks.result import Figure, Result, main
from oprag.compare import write_report
from oprag.compare.experiment import Experiment
from oprag.compare.running.run import run as run_experiment

__all__ = ["echo", "experiment", "run"]

ANSWERS, MEGABYTES, SECONDS, RUNS = 10_000, 2.0, 3.0, 3
GRID: list[dict[str, Any]] = [
    {
        "order": ["source", "rank", "reverse_rank"],
        "k": [2, 8, 32, 128],
        "similarity_threshold": ["none", 0.2],
        "redundancy_threshold": ["none", 0.8, 0.9],
    },
    {
        "method": ["self_route", "long_context"],
        "order": ["source", "rank"],
        "k": [2, 8, 32, 128],
        "source_token_budget": 4_000,
        "overflow": "truncate_end",
    },
    {"method": "context_only", "order": ["source", "rank", "reverse_rank"], "k": [4, 16, 64, 256]},
]
EMPTY = "<!DOCTYPE html><title>Empty</title><p>Nothing"


def echo() -> Callable[[str], str]:
    """A model that answers with a part of its prompt, or sometimes that there is no answer."""

    def model(prompt: str) -> str:
        number = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16)
        if "unanswerable" in prompt and number % 3 == 0:
            return "unanswerable"
        words = prompt.split()
        first = number % max(1, len(words) - 30)
        return " ".join(words[first : first + 5 + number % 25])

    return model


def experiment() -> Experiment:
    """An experiment with 10,000 answers: 100 questions in 100 cells."""
    return Experiment(
        name="report",
        data={"reference": language_reference(5)},
        models={"echo": echo()},
        grid=GRID,
    )


def run() -> Result:
    """Run it, write its report, and open that in Chromium if it is installed."""
    result = Result(
        "The HTML report",
        "100 questions about the Python language reference (20 distinct) in 100 "
        "cells. Opening is the time in which a headless Chromium draws the page, minus that for an empty page.",
    )
    with TemporaryDirectory() as folder:
        wanted, results, page = experiment(), Path(folder, "results.db"), Path(folder, "report.html")
        report = run_experiment(wanted, results)
        seconds: list[float] = []
        for _ in range(RUNS):
            started = time.perf_counter()
            write_report(results, page)
            seconds.append(time.perf_counter() - started)
        size = page.stat().st_size / 1e6
        name = f"report of {report.total:,} answers"
        small = report.complete and report.total == ANSWERS and size <= MEGABYTES
        result.figures.append(Figure(f"{name}: size", f"at most {MEGABYTES:g} MB", f"{size:.2f} MB", small))
        result.figures.append(Figure(f"{name}: writing", "", f"{median(seconds):.2f} s", reached=True))
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            result.notes.append("Chromium is not installed, so the report was not opened.")
        else:
            Path(folder, "empty.html").write_text(EMPTY, encoding="utf-8")
            full, empty = (_opened(browser, Path(folder, one)) for one in ("report.html", "empty.html"))
            beyond = median(full) - median(empty)
            result.figures.append(
                Figure(f"{name}: opening", f"at most {SECONDS:g} s", f"{beyond:.2f} s", beyond <= SECONDS)
            )
    return result


def _opened(browser: str, page: Path) -> list[float]:
    """The seconds in which a browser starts, draws a page and exits."""
    seconds: list[float] = []
    for number in range(1 + RUNS):
        picture = page.with_suffix(".png")
        profile = page.parent / "profile"
        started = time.perf_counter()
        subprocess.run(
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
                *("--window-size=1200,2000", f"--screenshot={picture}", page.as_uri()),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
        if number:  # The first run creates the profile.
            seconds.append(time.perf_counter() - started)
        if not picture.exists():
            raise RuntimeError(f"{browser} wrote no screenshot of {page}")
        picture.unlink()
    return seconds


if __name__ == "__main__":
    main(run)
