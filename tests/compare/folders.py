"""A folder with an experiment: a TOML file, questions in our own format, and their documents."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

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
    # The same in Python, for experiments with functions of ours.
    path.with_suffix(".py").write_text(PYTHON, encoding="utf-8")
    return path


PYTHON = """\
from pathlib import Path

from tests.compare.folders import experiment_of

experiment = experiment_of(Path(__file__).with_suffix(".toml"))
"""


def in_python(path: Path) -> str:
    """What the command line takes for the Python file beside an experiment file."""
    return f"{path.with_suffix('.py')}:experiment"


def argument(path: Any) -> str:
    """What the command line takes for an experiment: the file, or the Python file if it has functions of ours."""
    has_functions = isinstance(path, Path) and path.is_file() and '"tests.' in path.read_text(encoding="utf-8")
    return in_python(path) if has_functions else str(path)


def experiment_of(path: Path, **changes: Any) -> Experiment:
    """The experiment that a file describes, in which `tests.MODULE:FUNCTION` is a function of ours that is called."""
    content = tomllib.loads(path.read_text(encoding="utf-8")) | changes
    for part, kind in (("models", ModelSpec), ("embedders", EmbedderSpec)):
        for name, table in content.get(part, {}).items():
            content[part][name] = _made(kind, name, {"use": table} if isinstance(table, str) else table)
    content["metrics"] = [_function(one) for one in content["metrics"]] if "metrics" in content else None
    content["data"] = {name: _read(path.parent, name, dict(table)) for name, table in content["data"].items()}
    return Experiment(**{name: value for name, value in content.items() if value is not None})


def _made(kind: Any, name: str, table: dict[str, Any]) -> Any:
    settings = {"name": name, **table}
    use, called = settings.pop("use"), settings.pop("name")
    made = _function(use)
    return kind(made(**settings), called) if callable(made) else kind(use, called, **settings)


def _function(name: Any) -> Any:
    module, _, function = str(name).partition(":")
    return getattr(import_module(module), function) if module.startswith("tests.") else name


def _read(folder: Path, name: str, table: dict[str, Any]) -> Any:
    given = {key: table.pop(key, None) for key in ("path", "format", "documents", "sample", "seed")}
    documents = given["documents"] and folder / given["documents"]
    data = read_data(folder / given["path"], given["format"] or "oprag", name=name, documents=documents, **table)
    return data if given["sample"] is None else data.sample(given["sample"], given["seed"] or 0)


def model(**settings: Any) -> str:
    """The table of a model that is a function of ours."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join(["[models.quick]", 'use = "tests.compare.answering:quick"', *lines])


EVERYTHING = '''\
name = "all of it"
metrics = ["token_f1", "evidence_coverage", "correct"]
count_tokens = "words"
score_embedder = "local"
max_concurrency = 3
give_up_after = 7
[data.book]
path = "data/questions.jsonl"
format = "oprag"
sample = 1
seed = 5
[data.other]
path = "data"
sample = 1
[models.quick]
use = "openai:gpt-5-mini"
temperature = 0
max_tokens = 50
base_url = "http://localhost:1/v1"
max_retries = 4
[models.small]
use = "local"
[embedders.first]
use = "local"
question_prefix = "Find: "
tokenizer = "local"
[prompts]
answer = """
{context}
{question}"""
[judges.correct]
model = "quick"
prompt = "{question} {answers} {answer}"
grades = {good = 1, bad = 0}
[prices.quick]
input = 0.15
output = 0.60
[prices.small]
input = 0
output = 0
[limits]
calls = 10_000
money = 10.0
[[grid]]
method = ["stuff", "closed_book"]
order = ["source", "random"]
seed = [1, 2]
k = 2
similarity_threshold = ["none", 0.3]
header = "[{source}]"
data = "book"
model = "quick"
[[grid]]
method = "context_only"
store = "index"
k = 2
stitch = false
'''
"""An experiment file with every key; it is read beside `write_data("data")`."""
