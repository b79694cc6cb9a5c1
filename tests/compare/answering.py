"""Models for experiments, for processes of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from oprag.methods.answer import Completion, Usage

_LOCK = threading.Lock()
LEAKED = "sk-proj-" + "0123456789abcdefXYZ" * 2
"""No key of anybody, in the form of one."""


def quick(log: str = "", seconds: float = 0.0, failing: str = "") -> Callable[[str], str]:
    """A model that writes each call to a file before it replies, and fails on what it was told to fail on.

    Args:
        log: The file; a line for each call.
        seconds: How long it takes.
        failing: A word; a call whose prompt has it fails, unless `log` has a file beside it that ends in ".mended".
    """
    return partial(_quick_reply, log, seconds, failing)


def _quick_reply(log: str, seconds: float, failing: str, prompt: str) -> str:
    if log:
        with _LOCK, Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{len(prompt)} {hash_of(prompt)}\n")
    time.sleep(seconds)
    if failing and failing in prompt and not Path(f"{log}.mended").exists():
        raise ValueError(f"no answer about {failing}\nand a second line")
    return f"forty tons {hash_of(prompt)}"


def short(cut: str = "", empty: str = "", limit: int = 3) -> Callable[[str], Any]:
    """A model that is cut at its limit, or says nothing, where a prompt has a word."""

    def reply(prompt: str) -> Any:
        if empty and empty in prompt:
            return Completion("", usage=Usage(len(prompt) // 4, limit), finish_reason="stop")
        reason = "length" if cut and cut in prompt else "stop"
        return Completion(f"forty tons {hash_of(prompt)}", usage=Usage(len(prompt) // 4, limit), finish_reason=reason)

    return reply


def chatty() -> Callable[[str], str]:
    """A model that prints."""
    print("loading weights")  # noqa: T201 - what functions of users do

    def reply(prompt: str) -> str:
        print(f"asked {len(prompt)} characters")  # noqa: T201
        return "forty tons"

    return reply


def leaking() -> Callable[[str], str]:
    """A model whose errors repeat the key that its client has sent, as some clients' do."""

    return _leak


def _leak(prompt: str) -> str:
    raise PermissionError(f"Incorrect API key provided for {len(prompt)} characters: {LEAKED}")


def hash_of(prompt: str) -> str:
    """A short name of a prompt, the same in every process."""
    import hashlib

    return hashlib.sha256(prompt.encode()).hexdigest()[:12]


def good() -> Callable[[str], str]:
    """A model that is always right about the harbour."""
    right = {"crane": "forty tons", "bread": "three hours", "comet": "in March", "ferry": "at seven"}
    return lambda prompt: next(
        answer for word, answer in right.items() if word in prompt.rpartition("Question")[2].lower()
    )


def bad() -> Callable[[str], str]:
    """A model that is always wrong."""
    return lambda prompt: f"nothing known in {len(prompt)} characters"
