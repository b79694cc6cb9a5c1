"""Time of a sweep, from the command to the profile, in a new process without caches."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.questions import QUESTIONS
from benchmarks.result import Figure, Result, main
from benchmarks.texts import document

WORDS, ASKED, ASKED_SECONDS = 150_000, 50, 60.0
RUNS = 3
COMMAND = [
    sys.executable,
    "-c",
    "from oprag.cli import main; main()",
    "sweep",
    "book.txt",
    "--questions",
    "asked.jsonl",
]


def run() -> Result:
    """Sweep over eight budgets and three orders, of which random has three seeds."""
    seconds: list[float] = []
    for _ in range(RUNS):
        with TemporaryDirectory() as folder:
            _write(Path(folder))
            started = time.perf_counter()
            subprocess.run(COMMAND, cwd=folder, check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
            complete = Path(folder, "oprag.toml").exists()
    taken = median(seconds)
    return Result(
        "Sweep",
        f"`oprag sweep book.txt --questions asked.jsonl`, from the command to the written profile: a document of "
        f"{WORDS:,} words, {ASKED} questions ({len(QUESTIONS)} distinct), evidence "
        "coverage as the score, the default eight budgets and three orders (random with three seeds).",
        figures=[
            Figure(
                f"{WORDS:,} words, {ASKED} questions, 8 budgets, 3 orders",
                f"at most {ASKED_SECONDS:g} s",
                f"{taken:.1f} s",
                complete and taken <= ASKED_SECONDS,
            )
        ],
    )


def _write(folder: Path) -> None:
    reference = "\n\n".join(topics.values())
    others = document(WORDS - len(reference.split()))
    text = f"{others[: len(others) // 2]}\n\n{reference}\n\n{others[len(others) // 2 :]}"
    (folder / "book.txt").write_text(text, encoding="utf-8")
    asked = list(QUESTIONS.items())
    with (folder / "asked.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(ASKED):
            question, topic = asked[number % len(asked)]
            again = number // len(asked) + 1
            start = text.index(topics[topic])
            evidence = [{"start": start, "end": start + len(topics[topic])}]
            words = question if again == 1 else f"{question} ({again})"
            lines.write(json.dumps({"question": words, "evidence": evidence}) + "\n")


if __name__ == "__main__":
    main(run)
