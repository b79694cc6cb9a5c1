"""Import times, in addition to the imports that any user of the framework makes anyway."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, ms

RUNS = 15
NOTHING = ""
NUMPY = "import numpy"
LANGCHAIN = "import langchain_core.documents, langchain_core.retrievers, langchain_core.vectorstores"
CLOCK = "from time import perf_counter"
LLAMA_INDEX = "import llama_index.core"


class Import(NamedTuple):
    """A statement to time in a fresh process, after other statements."""

    before: str
    statement: str


CASES = {
    "`numpy`": Import(NOTHING, NUMPY),
    "`oprag`, after NumPy": Import(NUMPY, "import oprag"),
    "langchain-core (documents, retrievers, vectorstores)": Import(NOTHING, LANGCHAIN),
    "`oprag.langchain`, after langchain-core": Import(LANGCHAIN, "import oprag.langchain"),
    "`oprag.langchain`, after langchain-core and NumPy": Import(f"{LANGCHAIN}; {NUMPY}", "import oprag.langchain"),
    "llama-index-core": Import(NOTHING, LLAMA_INDEX),
    "`oprag.llama_index`, after llama-index-core": Import(LLAMA_INDEX, "import oprag.llama_index"),
}

LIMITS = {"`oprag`, after NumPy": 50, "`oprag.langchain`, after langchain-core": 30}


def run(runs: int = RUNS) -> Result:
    """Time imports in fresh processes."""
    seconds: dict[str, list[float]] = {name: [] for name in CASES}
    for turn in range(runs + 1):
        for name, case in CASES.items():
            taken = _seconds(case)
            # The first run writes the bytecode files.
            if turn:
                seconds[name].append(taken)
    timings = {name: Timing(tuple(values)) for name, values in seconds.items()}
    return Result(
        "Imports",
        f"Each statement was timed in {runs} new processes, after the imports that it needs; Python's own start is not "
        "included.",
        figures=[
            Figure(name, f"at most {limit} ms", f"{ms(timings[name].median)} ms", timings[name].median * 1000 <= limit)
            for name, limit in LIMITS.items()
        ],
        tables=[
            Table(
                "Milliseconds:",
                ["import", "time"],
                [[name, str(timing)] for name, timing in timings.items()],
            )
        ],
    )


def _seconds(case: Import) -> float:
    program = f"{case.before}\n{CLOCK}\nstart = perf_counter()\n{case.statement}\nprint(perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    main(run)
