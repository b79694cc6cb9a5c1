"""Run benchmarks, each in a separate process, and write their sections of the pages in docs/benchmarks."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.result import Result, markdown

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"
LANGCHAIN, LLAMA_INDEX = ("langchain-core", "langchain-classic"), ("llama-index-core",)
STATIC, MINILM = ("wordllama", "tokenizers"), ("sentence-transformers",)
PAGES: dict[str, dict[str, tuple[str, ...]]] = {
    "assembly.md": {
        "imports": ("numpy", "langchain-core", *LLAMA_INDEX),
        "assembly": ("numpy",),
        "adapters": ("numpy", "langchain-core", *LLAMA_INDEX),
        "search": ("numpy", "langchain-core", *LLAMA_INDEX),
        "cold": ("numpy", "langchain-core", "langchain-text-splitters", *LLAMA_INDEX, *STATIC),
        "inversions": ("langchain-core", "langchain-text-splitters", *LLAMA_INDEX, *STATIC, "langchain-qdrant"),
    },
    "answering.md": dict.fromkeys(("overhead", "first_token", "concurrency"), (*LANGCHAIN, *LLAMA_INDEX)),
    "thresholds.md": {
        "redundancy": ("numpy", "langchain-core"),
        "thresholds": ("numpy", *LANGCHAIN, "langchain-community", *STATIC, *MINILM),
        "coverage": ("numpy", *STATIC, *MINILM, "bm25s"),
        "threshold_grid": ("numpy", "langchain-core", *STATIC, *MINILM),
        "continuity": ("numpy", *STATIC, *MINILM, "bm25s"),
    },
    "comparing.md": {
        "harness": ("numpy", *STATIC),
        "sharing": ("numpy", *STATIC, "langchain-chroma", "faiss-cpu", "langchain-qdrant"),
        "kills": (),
        "sweep": ("numpy", *STATIC),
        "html_report": (),
        "orders": ("numpy", *STATIC, "bm25s"),
        "infinitebench_scores": (),
    },
}
"""The benchmarks of each page, and the packages whose versions they name."""
TITLES = {
    "assembly.md": "Benchmarks: imports, assembly, search",
    "answering.md": "Benchmarks: chains and query engines",
    "thresholds.md": "Benchmarks: thresholds, continuity and search",
    "comparing.md": "Benchmarks: comparisons",
}
WITH_DATA = ("inversions", "coverage", "threshold_grid", "continuity", "infinitebench_scores", "orders")
"""Benchmarks that need question sets."""

ABOUT = """<!-- `python -m benchmarks` writes the sections of this page. Change the benchmarks, not this file. -->

# {title}

Times are medians. Candidates of a table were timed in turn, with the garbage collector off and one BLAS thread
(`OPENBLAS_NUM_THREADS=1`). [Performance](../performance.md) is the summary."""
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def main() -> None:
    """The command line."""
    names = [name for of_page in PAGES.values() for name in of_page]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all ({', '.join(names)})")
    parser.add_argument("--data", type=Path, help=f"folder of question sets, for {', '.join(WITH_DATA)}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the pages")
    options = parser.parse_args()
    if unknown := set(options.names).difference(names):
        parser.error(f"unknown benchmarks: {', '.join(sorted(unknown))}")
    if options.data is None and (needing := set(options.names).intersection(WITH_DATA)):
        parser.error(f"{', '.join(sorted(needing))}: --data is required")
    for page, of_page in PAGES.items():
        for name in of_page:
            if (name in options.names or not options.names) and (options.data is not None or name not in WITH_DATA):
                _write(options.folder / page, name, of_page[name], options.data)


def _write(page: Path, name: str, packages: Sequence[str], data: Path | None) -> None:
    """Run a benchmark and replace or add its section of a page."""
    about_machine = machine(("oprag", *packages))
    result = _run(name, *(("--data", str(data.resolve())) if data is not None and name in WITH_DATA else ()))
    command = f"python -m benchmarks {name}{' --data FOLDER' if name in WITH_DATA else ''}"
    section = f"{markdown(result)}\n\nWritten by `{command}`. {about_machine}"
    sections = {**_sections(page), result.title: section}
    page.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join([ABOUT.format(title=TITLES[page.name]), *sections.values()])
    page.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {result.title} in {page}", flush=True)


def _sections(page: Path) -> Mapping[str, str]:
    """The sections of a page by title."""
    if not page.exists():
        return {}
    parts = _SECTION.split(page.read_text(encoding="utf-8"))[1:]
    return {title: f"## {title}{text}".strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _run(name: str, *arguments: str) -> Result:
    print(f"benchmarks.{name} …", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *arguments]
    return Result.from_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    main()
