"""Doing something at the right moment of what goes on in another thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def as_soon_as(condition: Callable[[], bool], action: Callable[[], Any]) -> Iterator[None]:
    """Do it when the condition holds, from another thread; not at all when the block has ended before."""
    ended = threading.Event()

    def wait() -> None:
        while not condition():
            if ended.wait(0.02):
                return
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
