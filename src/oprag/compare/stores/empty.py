"""An empty LangChain vector store, and what is particular about it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EmptyStore", "new_name"]

_AT_ONCE = 1_000


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class EmptyStore:
    """An empty LangChain vector store.

    Attributes:
        store: The store.
        close: Gives back what it holds.
        at_once: How many chunks it takes in one call.
        key: The id of a row.
        search: What each search needs beside.
        threads: Whether it can be searched from several threads at a time.
    """

    store: Any
    close: Callable[[], None] = _nothing
    at_once: int = _AT_ONCE
    key: Callable[[int], str | int] = str
    search: Mapping[str, Any] = field(default_factory=dict)
    threads: bool = True


def new_name() -> str:
    """A name that no other collection or table has."""
    return f"oprag_{uuid.uuid4().hex}"
