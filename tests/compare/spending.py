"""A book of spending, questions about two of them each, and a model that loses its way in long or reversed contexts."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

__all__ = ["BARRELS", "LONGEST", "reader", "write_ledgers"]

NAMES = [
    "".join(parts).capitalize()
    for parts in product(("bar", "con", "del", "fin"), ("to", "ri", "ma"), ("ck", "sson", "w"))
]
BARRELS = {name: 11 + 7 * number % 89 for number, name in enumerate(NAMES)}
LONGEST = 14  # spending that the model can read
_LEDGER = re.compile(r"spending of (\w+) shows (\d+) barrels")
_QUESTION = re.compile(r"spending of (\w+) and (\w+) show")


def write_ledgers(folder: Path, questions: int = 40) -> tuple[Path, Path]:
    """Write the book and the questions, and give both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"In the cellar book the spending of {name} shows {BARRELS[name]} barrels of wine. " for name in NAMES]
    book = "".join(parts)
    chance = random.Random(3)
    lines: list[dict[str, Any]] = []
    for number in range(questions):
        first, second = sorted(chance.sample(range(len(NAMES)), 2))
        names = NAMES[first], NAMES[second]
        spans = [(book.index(parts[place]), book.index(parts[place]) + len(parts[place])) for place in (first, second)]
        lines.append(
            {
                "id": str(number),
                "question": f"How many barrels do the spending of {names[0]} and {names[1]} show ({number})?",
                "answers": [f"{BARRELS[names[0]]} and {BARRELS[names[1]]}"],
                "evidence": [{"start": start, "end": end} for start, end in spans],
            }
        )
    paths = folder / "book.txt", folder / "asked.jsonl"
    paths[0].write_text(book, encoding="utf-8")
    paths[1].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return paths


def reader() -> Callable[[str], str]:
    """A model that finds both spending in their sequence, one of them otherwise, and none among too many."""

    def read(prompt: str) -> str:
        shown = _LEDGER.findall(prompt)
        asked = _QUESTION.search(prompt)
        assert asked is not None
        found = [number for name, number in shown if name in asked.groups()]
        in_sequence = [name for name, _ in shown if name in asked.groups()] == list(asked.groups())
        if len(shown) > LONGEST or not found:
            return "unknown"
        return f"{found[0]} and {found[1]}" if in_sequence else found[0]

    return read
