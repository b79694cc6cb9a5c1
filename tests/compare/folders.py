"""A folder with an experiment: a TOML file, questions in our own format, and their documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PARTS = [
    "The harbour of Aldmere has nine cranes. Ships wait outside when the wind blows from the west. ",
    "Bread rises for three hours in a cool cellar before it is baked. The crust must sing when it cools. ",
    "A comet crossed the sky in March, and the observatory measured its tail every night. ",
    "Each crane of the harbour lifts forty tons, and the oldest crane was built in Leith. ",
    "The ferry to Varn leaves at seven, and on Sundays at nine, unless there is ice on the strait. ",
]
BOOK = "".join(PARTS)
QUESTIONS = [
    {"id": "cranes", "question": "How much does a crane lift?", "answers": ["forty tons"], "quote": "lifts forty tons"},
    {"id": "bread", "question": "How long does bread rise?", "answers": ["three hours"], "quote": "for three hours"},
    {"id": "comet", "question": "When did the comet cross the sky?", "answers": ["in March"], "quote": "in March"},
    {"id": "ferry", "question": "When does the ferry leave?", "answers": ["at seven"], "quote": "leaves at seven"},
]


def write_data(folder: Path, count: int = len(QUESTIONS), documents: int = 1) -> Path:
    """Write so many questions about each of so many books."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number in range(documents):
        text = BOOK if number == 0 else f"{BOOK}This is copy {number}."
        (folder / f"book{number}.md").write_text(text, encoding="utf-8")
        for question in QUESTIONS[:count]:
            row = dict(question)
            start = text.index(str(row.pop("quote")))
            evidence = [{"start": start, "end": start + len(str(question["quote"]))}]
            rows.append(row | {"id": f"{row['id']}{number}", "path": f"book{number}.md", "evidence": evidence})
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def write_experiment(folder: Path, grid: str, *others: str, data: str = "", **numbers: Any) -> Path:
    """Write an experiment over such data, named "harbour".

    Args:
        folder: Where to.
        grid: The lines of the grid.
        others: Other tables.
        data: More lines of the table of the data.
        numbers: Other values of the first level, as TOML has them.
    """
    write_data(folder / "data")
    top = [f"{name} = {value}" for name, value in numbers.items()]
    parts: Sequence[str] = (
        'name = "harbour"',
        *top,
        f'[data.book]\npath = "data/questions.jsonl"\n{data}',
        *others,
        f"[grid]\nchunk_size = 12\n{grid}",
    )
    path = folder / "harbour.toml"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def model(**settings: Any) -> str:
    """The table of a model that is a function of ours."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join(["[models.quick]", 'use = "tests.compare.answering:quick"', *lines])
