"""Agents that search four times in a run: tokens read by the model, and time and size of a working context.

`python -m benchmarks.agents tokens --data FOLDER` runs agents over four question sets, `python -m benchmarks.agents
files --data FOLDER` runs Deep Agents over them, and `python -m benchmarks.agents times` times the working context and
the middleware. Each writes its part of docs/benchmarks/agents.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.agent_files import files
from benchmarks.agent_times import ROUNDS, times
from benchmarks.agent_tokens import RUNS, SETS, tokens
from benchmarks.machine import machine
from benchmarks.result import Result, markdown, report_missed

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "agents.md"
PARTS = ("tokens", "files", "times")
PACKAGES = ("oprag", "numpy", "langchain", "langchain-core", "langgraph", "langchain-text-splitters", "wordllama")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, help="tokens, files: folder with a folder for each set")
    parser.add_argument("--sets", nargs="+", default=SETS, help="tokens, files: the sets")
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="tokens, files: the number of runs of each kind on each set"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="times: number of repetitions of each case")
    parser.add_argument("--page", type=Path, default=PAGE, help="page with markers for the part")
    parser.add_argument("--print", action="store_true", help="print the part instead of writing the page")
    options = parser.parse_args()
    about_machine = machine((*PACKAGES, *(("deepagents",) if options.part == "files" else ())))
    if options.part != "times":
        if options.data is None:
            parser.error(f"{options.part}: --data is required")
        result = {"tokens": tokens, "files": files}[options.part](options.data, options.sets, options.runs)
        command = f"python -m benchmarks.agents {options.part} --data FOLDER --runs {options.runs}"
    else:
        result = times(options.rounds)
        command = "python -m benchmarks.agents times"
    report_missed(result)
    written = _part(result, command, about_machine)
    if options.print:
        print(written)
        return
    before, begin, rest = options.page.read_text(encoding="utf-8").partition(f"<!-- begin {options.part} -->")
    _, end, after = rest.partition(f"<!-- end {options.part} -->")
    if not end:
        sys.exit(f"{options.page} has no markers for the part {options.part}")
    options.page.write_text("".join([before, begin, "\n", written, "\n", end, after]), encoding="utf-8")
    print(f"wrote {options.page}")


def _part(result: Result, command: str, about_machine: str) -> str:
    """A part of the page."""
    return f"{markdown(result)}\n\nWritten by `{command}`. {about_machine}"


if __name__ == "__main__":
    main()
