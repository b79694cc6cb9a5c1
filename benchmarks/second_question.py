"""A second question about a document of 150,000 words, in a new process, with the index cached by the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.result import Figure, Result, Table, main
from benchmarks.texts import document
from oprag.index.document_index import SearchKind

WORDS = 150_000
RUNS = 7
LIMIT = 1.0
SEARCHES: tuple[SearchKind, ...] = ("dense", "bm25", "hybrid")
FIRST, SECOND = "Which objects can be called?", "Which objects can be called with keyword arguments?"


def run(runs: int = RUNS) -> Result:
    """Time the whole command, including Python's start; the kinds of search in turn."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "document.txt")
        path.write_text(document(WORDS), encoding="utf-8")
        first = {search: _asked(path, FIRST, search) for search in SEARCHES}
        seconds: dict[SearchKind, list[float]] = {search: [] for search in SEARCHES}
        for _ in range(runs):
            for search, of_it in seconds.items():
                of_it.append(_asked(path, SECOND, search))
    slowest = max(median(of_it) for of_it in seconds.values())
    return Result(
        "Second question",
        f"`oprag context FILE QUESTION --index-cache DIR` over a generated document of {WORDS:,} words, a new process "
        "for each question, Python's start and imports included. The first question splits the document and, except "
        "for bm25, embeds it. Each kind of search has a separate cache folder.",
        figures=[
            Figure("second question, slowest search", f"at most {LIMIT:g} s", f"{slowest:.2f} s", slowest <= LIMIT)
        ],
        tables=[
            Table(
                f"Seconds; for the second question the median of {runs} runs (best):",
                ["search", "first question", "second question"],
                [
                    [search, f"{first[search]:.2f}", f"{median(of_it):.2f} ({min(of_it):.2f})"]
                    for search, of_it in seconds.items()
                ],
            )
        ],
    )


def _asked(path: Path, question: str, search: SearchKind) -> float:
    command = [sys.executable, "-c", "from oprag.cli import main; main()", "context", str(path), question]
    options = ["--index-cache", str(path.parent / f"indexes_{search}"), "--search", search, "--raw"]
    begin = perf_counter()
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - begin


if __name__ == "__main__":
    main(run)
