"""Run every benchmark, each in a process of its own, and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.result import Result, markdown

OUTPUT = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BENCHMARKS = ("imports", "assembly", "adapters", "search", "cold")
PACKAGES = (
    "oprag",
    "numpy",
    "langchain-core",
    "langchain-text-splitters",
    "langchain-community",
    "llama-index-core",
    "wordllama",
    "tokenizers",
)

ABOUT = (
    "Written by `{command}`, on one machine in one run; each `python -m benchmarks.NAME` also runs alone. What stands "
    "in one table was timed in turn, with the garbage collector off and one BLAS thread (`OPENBLAS_NUM_THREADS=1`). "
    "The median decides; the best repetition, in brackets, is the one that other programs disturbed least."
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder of question sets, for benchmarks.inversions")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    machine = _machine()
    results = [_run(name) for name in BENCHMARKS]
    if options.data is not None:
        results.append(_run("inversions", "--data", str(options.data.resolve())))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(_report(machine, results, with_data=options.data is not None), encoding="utf-8")
    print(f"wrote {options.output}")


def _run(name: str, *arguments: str) -> Result:
    print(f"benchmarks.{name} …", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *arguments]
    return Result.from_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _report(machine: str, results: Sequence[Result], *, with_data: bool) -> str:
    figures = [figure for result in results for figure in result.figures]
    missed = [figure for figure in figures if not figure.reached]
    command = "python -m benchmarks --data FOLDER" if with_data else "python -m benchmarks"
    verdict = f"{len(figures) - len(missed)} of {len(figures)} figures are reached."
    if missed:
        verdict += " Missed: " + "; ".join(f"{figure.what} ({figure.measured})" for figure in missed) + "."
    parts = [
        f"<!-- Written by `{command}`; change the benchmarks, not this file. -->",
        "# Benchmarks",
        verdict,
        ABOUT.format(command=command),
        machine,
        *(markdown(result) for result in results),
    ]
    if not with_data:
        parts.append("## Inverted pairs\n\nNot run: `benchmarks.inversions` needs question sets (`--data`).")
    return "\n\n".join(parts) + "\n"


def _machine() -> str:
    lines = [
        f"- Processor: {_processor()}, {os.cpu_count()} cores, {_memory()}",
        f"- System: {_system()}",
        f"- Python {platform.python_version()} ({platform.python_implementation()})",
        f"- Packages: {', '.join(_version(package) for package in PACKAGES)}",
        f"- Date: {datetime.now(UTC):%Y-%m-%d}; load of the machine when the run began: {os.getloadavg()[0]:.1f}",
    ]
    return "\n".join(lines)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"


def _system() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.machine()}"
    except (OSError, KeyError):
        return platform.platform()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


if __name__ == "__main__":
    main()
