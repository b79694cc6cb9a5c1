"""Time from the start of a process to an ordered context: a document of 150,000 words, one question."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.cold_start import WAYS
from benchmarks.result import Figure, Result, Table, main
from benchmarks.texts import document

WORDS = 150_000
RUNS = 5
LIMIT = 3.0
QUESTION = "Which objects can be called with keyword arguments?"
STEPS = {"import": "import", "load": "load the embedder", "index": "split and embed", "answer": "search and order"}
# The unit of `ru_maxrss`, in bytes.
UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Start:
    """The measurements of one new process."""

    wall: float
    megabytes: float
    steps: dict[str, float]
    characters: int


def run(runs: int = RUNS) -> Result:
    """Time new processes in turn, including Python's start."""
    text = document(WORDS)
    starts: dict[str, list[Start]] = {way: [] for way in WAYS}
    with TemporaryDirectory() as folder:
        path = Path(folder, "document.txt")
        path.write_text(text, encoding="utf-8")
        for turn in range(runs + 1):
            for way in WAYS:
                started = _start(way, path)
                # The first turn brings the package files into the file system cache.
                if turn:
                    starts[way].append(started)
    wall = median(start.wall for start in starts["oprag"])
    return Result(
        "Cold start",
        f"A new process reads a generated document of {WORDS:,} words, splits it into chunks of 128 tokens, embeds "
        "them and searches for 128 chunks. oprag returns an ordered and stitched context; the frameworks, with the "
        "same embedder, their own splitters and in-memory stores, return chunks in rank order.",
        figures=[
            Figure("ordered context, in a new process", f"at most {LIMIT:g} s", f"{wall:.2f} s", wall <= LIMIT),
        ],
        tables=[
            Table(
                f"Seconds, median of {runs} runs, and peak memory of the process:",
                ["", "total", *STEPS.values(), "peak memory"],
                [_row(way, runs_of) for way, runs_of in starts.items()],
            )
        ],
    )


def _start(way: str, path: Path) -> Start:
    begin = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.cold_start", way, str(path), QUESTION], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    output = process.stdout.read()
    # Unlike `process.wait`, this returns the peak memory of this process alone.
    _, status, usage = os.wait4(process.pid, 0)
    wall = perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    printed = json.loads(output)
    return Start(wall, usage.ru_maxrss * UNIT / 1e6, printed["seconds"], printed["characters"])


def _row(way: str, starts: list[Start]) -> list[str]:
    steps = [f"{median(start.steps[step] for start in starts):.2f}" for step in STEPS]
    return [
        way,
        f"{median(start.wall for start in starts):.2f}",
        *steps,
        f"{median(start.megabytes for start in starts):.0f} MB",
    ]


if __name__ == "__main__":
    main(run)
