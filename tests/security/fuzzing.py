"""How many cases each fuzzer of this folder tries: few in `make test`, 10,000 in `make fuzz`."""

from __future__ import annotations

import os


def cases() -> int:
    return int(os.environ.get("OPRAG_FUZZ_CASES", "50"))
