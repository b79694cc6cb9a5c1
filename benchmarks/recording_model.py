"""A model that replies at once, logs every call, and can be told to fail."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["FAILING", "LOG", "SECONDS", "calls_in", "make", "set_up"]


LOG, FAILING, SECONDS = "RECORDING_MODEL_LOG", "RECORDING_MODEL_FAILING", "RECORDING_MODEL_SECONDS"
"""The environment variables for the log file of the calls, the share of calls that fail at random, and the seconds of
a call."""


def make() -> Callable[[str], str]:
    """A model whose reply depends only on its prompt; the hash of each prompt is logged before the reply."""
    generator = random.Random(0)
    log = os.environ.get(LOG)
    failing, seconds = (float(os.environ.get(name, "0")) for name in (FAILING, SECONDS))

    def model(prompt: str) -> str:
        found = hashlib.sha256(prompt.encode()).hexdigest()
        if log:
            # A single write, which a kill cannot split.
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
    """Configure the models that are made from now on."""
    os.environ[LOG], os.environ[FAILING], os.environ[SECONDS] = str(log or ""), str(failing), str(seconds)


def calls_in(path: Path) -> list[str]:
    """The logged calls."""
    return path.read_text().split() if path.exists() else []
