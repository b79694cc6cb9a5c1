"""Run every benchmark, each in a process of its own, and write docs/benchmarks/assembly.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.result import Result, markdown

OUTPUT = Path(__file__).parent.parent / "docs" / "benchmarks" / "assembly.md"
BENCHMARKS = (
    "imports",
    "assembly",
    "adapters",
    "overhead",
    "first_token",
    "concurrency",
    "search",
    "cold",
    "second_question",
    "redundancy",
    "thresholds",
    "harness",
    "sharing",
    "kills",
    "sweep",
    "html_report",
)
WITH_DATA = ("inversions", "coverage", "threshold_grid", "infinitebench_scores", "orders")
"""Those that need question sets."""
PACKAGES = (
    "oprag",
    "numpy",
    "langchain-core",
    "langchain-classic",
    "langchain-text-splitters",
    "langchain-community",
    "llama-index-core",
    "wordllama",
    "tokenizers",
    "sentence-transformers",
    "bm25s",
    "rouge-score",
    "langchain-chroma",
    "faiss-cpu",
    "langchain-qdrant",
)

ABOUT = (
    "Written by `{command}`, on one machine in one run; each `python -m benchmarks.NAME` also runs alone. The entries "
    "of a table were timed in turn, with the garbage collector off and one BLAS thread (`OPENBLAS_NUM_THREADS=1`). "
    "Times are medians, with the best repetition in parentheses."
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, help=f"a folder of question sets, for {', '.join(WITH_DATA)}")
    parser.add_argument("--only", nargs="+", choices=(*BENCHMARKS, *WITH_DATA), help="some of the benchmarks")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    about_machine = machine(PACKAGES)
    names = options.only or [*BENCHMARKS, *(() if options.data is None else WITH_DATA)]
    if options.data is None and (needing := set(names) & set(WITH_DATA)):
        parser.error(f"{', '.join(sorted(needing))}: give --data")
    results = [_run(name, *(("--data", str(options.data.resolve())) if name in WITH_DATA else ())) for name in names]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    command = " ".join(
        [
            "python -m benchmarks",
            *([] if options.only is None else ["--only", *options.only]),
            *([] if options.data is None else ["--data FOLDER"]),
        ]
    )
    report = _report(command, about_machine, results, all_of_them=options.only is None)
    options.output.write_text(report, encoding="utf-8")
    print(f"wrote {options.output}")


def _run(name: str, *arguments: str) -> Result:
    print(f"benchmarks.{name} …", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *arguments]
    return Result.from_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _report(command: str, about_machine: str, results: Sequence[Result], *, all_of_them: bool) -> str:
    parts = [
        f"<!-- Written by `{command}`; change the benchmarks, not this file. -->",
        "# Benchmarks",
        "These are raw results. [Performance](../performance.md) summarizes them.",
        ABOUT.format(command=command),
        about_machine,
        *(markdown(result) for result in results),
    ]
    if all_of_them and "--data" not in command:
        parts.append(f"Not run, since they need question sets (`--data`): {', '.join(WITH_DATA)}.")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
