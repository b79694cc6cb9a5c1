"""A run in a process of its own, to be stopped or killed: `python -m tests.compare.endless FILE LOG [SECONDS] [HANG]`.

Each call is written to the log before the model replies.
"""

from __future__ import annotations

import os
import sys
import time
from hashlib import sha256
from pathlib import Path

from oprag.compare.running.run import run
from tests.compare.helpers import METHODS, RecordingModel, experiment, keepers, reply_to

GRID = {"k": 4, "chunk_size": 32, "method": METHODS, "order": ["source", "rank"], "passage_tokens": 60}


def name_of(text: str) -> str:
    """What a prompt is called in the log."""
    return sha256(text.encode()).hexdigest()


def made(model):
    return experiment(model, grid=GRID, data=keepers(documents=2, questions=4), metrics=["token_f1"])


def main() -> None:
    path, log, seconds, hang = (*sys.argv[1:], "0", "0")[:4]
    opened = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    asked = 0

    def reply(text):
        nonlocal asked
        asked += 1
        os.write(opened, f"{name_of(text)}\n".encode())
        time.sleep(float(seconds))
        if int(hang) and asked > int(hang):
            time.sleep(600)
        return reply_to(text)

    report = run(made(RecordingModel(reply)), Path(path))
    sys.stdout.write(f"{report.outcome}\n")


if __name__ == "__main__":
    main()
