"""An experiment for a Ray cluster, whose model writes down every call; as a program, a driver that can be killed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.compare.running.run import run
from oprag.methods.answer import Completion, Usage
from tests.compare.helpers import METHODS, Words, experiment, keepers, reply_to, rows
from tests.compare.providers.hosted import Hosted

GRID = {"k": 4, "chunk_size": 32, "method": METHODS, "order": ["source", "rank"], "passage_tokens": 60}
SECONDS = 0.05
"""How long a call takes in what is to be stopped; a model that takes another time is another one."""

SELECT = (
    'SELECT question_id, method, "order", status, answer, calls, input_tokens, context_tokens, scores FROM results '
    "ORDER BY 1, 2, 3"
)


class Call(NamedTuple):
    """A line of the log."""

    at: float
    process: int
    reply: str


def model(
    log: str, seconds: float = 0.0, fails_on: str = "", dies_on: str = "", tokens: int = 0
) -> Callable[[str], Completion]:
    """A model that writes each call to a file before it replies; where LOG.mended is there, nothing fails or dies."""
    opened = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def reply(text: str) -> Completion:
        said = reply_to(text)
        os.write(opened, f"{time.time()} {os.getpid()} {said!r}\n".encode())
        mended = Path(f"{log}.mended").exists()
        if dies_on and dies_on in text and not mended:
            os._exit(7)
        time.sleep(seconds)
        if fails_on and fails_on in text and not mended:
            raise ConnectionResetError("the line is dead")
        return Completion(said, usage=Usage(tokens, 0)) if tokens else Completion(said)

    return reply


class Made:
    """A model with these settings, made anew by each process."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._reply: Callable[[str], Completion] | None = None

    def __reduce__(self) -> Any:
        return partial(Made, **self._settings), ()

    def __call__(self, text: str) -> Completion:
        self._reply = self._reply or model(**self._settings)
        return self._reply(text)


class AnotherElsewhere(Hosted):
    """A model that is another one in each process."""

    def __reduce__(self) -> Any:
        return another_in_each_process, ()


def another_in_each_process() -> Hosted:
    return AnotherElsewhere(model=f"chat-{os.getpid()}")


def spread(log: Path | None, questions: int = 3, grid: Any = None, **options: Any) -> Any:
    """The experiment; options of the model are those that `model` has."""
    names = ("seconds", "fails_on", "dies_on", "tokens")
    asked: dict[str, Any] = {name: options.pop(name) for name in names if name in options}
    given: dict[str, Any] = {
        "models": {"m": ModelSpec(Made(log=str(log), **asked), "model")},
        **options,
    }
    return experiment(
        None,
        grid=GRID if grid is None else grid,
        data=keepers(documents=2, questions=questions, words=200),
        embedders={"words": EmbedderSpec(Words(), "words")},
        **{"metrics": ["token_f1"], **given},
    )


def calls(log: Path) -> list[Call]:
    """The calls so far."""
    lines = log.read_text().splitlines() if log.exists() else []
    found = (line.split(" ", 2) for line in lines)
    return [Call(float(at), int(process), reply) for at, process, reply in found]


def asked_though_kept(path: Path, made: Iterable[Call]) -> list[Call]:
    """Calls whose replies were in the file when they were made."""
    kept = {
        repr(text): datetime.fromisoformat(at).timestamp() for text, at in rows(path, "SELECT text, at FROM replies")
    }
    # The file has whole milliseconds. There is one reply that many prompts have.
    return [call for call in made if call.at > kept[call.reply] + 0.001 and "unanswerable" not in call.reply]


def main() -> None:
    path, log = sys.argv[1:]
    import ray

    report = run(spread(Path(log), seconds=SECONDS), path, ray="local")
    print(report.outcome, ray.is_initialized())  # noqa: T201


if __name__ == "__main__":
    main()
