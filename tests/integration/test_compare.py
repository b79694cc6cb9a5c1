"""A whole experiment with a real model behind a real server, which is killed midway."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

from oprag.compare import DataSet, Evidence, Question
from oprag.compare.experiment import Experiment
from oprag.compare.running.run import run
from tests.integration.model_server import MortalServer

pytestmark = pytest.mark.integration

ASKED = {
    "assert": "What happens when the condition of an assert statement is false?",
    "lambda": "What is the value of a lambda expression?",
}


@pytest.fixture(scope="module")
def server() -> Iterator[MortalServer]:
    running = MortalServer()
    yield running
    running.kill()


def experiment(server: MortalServer) -> Experiment:
    documents = {name: topics[name][:4_000] for name in ASKED}
    questions = [
        Question(
            id=name,
            text=text,
            documents=(name,),
            answers=(name,),
            evidence=(Evidence(name, 0, len(documents[name])),),
        )
        for name, text in ASKED.items()
    ]
    model = {
        "use": "openai:smollm2",
        "base_url": f"{server.address}/v1",
        "max_tokens": 8,
        "temperature": 0,
        "timeout": 120,
        "max_retries": 0,
    }
    return Experiment(
        name="real",
        data={"reference": DataSet(name="reference", documents=documents, questions=questions)},
        models={"small": model},
        grid={
            "method": ["map_reduce", "refine", "map_rerank"],
            "order": ["source", "rank"],
            "chunk_size": 64,
            "k": 3,
            "passage_tokens": 64,
        },
        max_concurrency=2,
        give_up_after=3,
    )


def rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


def test_a_server_that_is_killed_midway_loses_no_committed_reply(server, tmp_path):
    path = tmp_path / "results.db"
    small = experiment(server)

    def answered() -> bool:
        # The file is there before its tables are.
        made = path.exists() and rows(path, "SELECT 1 FROM sqlite_master WHERE name = 'results'")
        return bool(made and rows(path, "SELECT 1 FROM replies LIMIT 1"))

    def kill_it() -> None:
        while not answered():
            threading.Event().wait(0.05)
        server.kill()

    killer = threading.Thread(target=kill_it)
    killer.start()
    first = run(small, path)
    killer.join()
    assert not first.complete
    assert first.answered + sum(first.failed.values()) + first.remaining == first.total
    kept = {key for (key,) in rows(path, "SELECT key FROM replies")}
    assert kept
    server.start()
    second = run(small, path, retry_failed=True)
    assert second.complete, second
    # The server's own figures, and as many calls as there are replies.
    assert rows(path, "SELECT min(input_tokens) > 0, max(estimated) FROM replies") == [(1, 0)]
    replies = rows(path, "SELECT key, run FROM replies")
    assert {key for key, run_number in replies if run_number == 1} == kept
    assert second.spent.calls == len(replies) + len(rows(path, "SELECT 1 FROM failed_calls"))
