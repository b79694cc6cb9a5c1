"""A model that answers at once, writes down every call, and can be told to fail."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["FAILING", "LOG", "SECONDS", "calls_in", "make", "set_up"]


LOG, FAILING, SECONDS = "RECORDING_MODEL_LOG", "RECORDING_MODEL_FAILING", "RECORDING_MODEL_SECONDS"
"""The environment variables that name the file of the calls, the share of them that fails at random, and how long a
call takes."""


def make() -> Callable[[str], str]:
    """A model whose reply depends on its prompt alone; the hash of each prompt is written down before it answers."""
    generator = random.Random(0)
    log = os.environ.get(LOG)
    failing, seconds = (float(os.environ.get(name, "0")) for name in (FAILING, SECONDS))

    def model(prompt: str) -> str:
        found = hashlib.sha256(prompt.encode()).hexdigest()
        if log:
            # One write, which no kill can cut in two.
            descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, f"{found}\n".encode())
            os.close(descriptor)
        if seconds:
            time.sleep(seconds)
        if failing and generator.random() < failing:
            raise ConnectionError(f"the model does not answer {found[:8]}")
        return f"Answer {found[:12]}\nConfidence: {int(found[:2], 16) % 101}"

    return model


def set_up(log: Path | None, failing: float = 0.0, seconds: float = 0.0) -> None:
    """What the models do that are made from now on."""
    os.environ[LOG], os.environ[FAILING], os.environ[SECONDS] = str(log or ""), str(failing), str(seconds)


def calls_in(path: Path) -> list[str]:
    """The calls that were written down."""
    return path.read_text().split() if path.exists() else []
