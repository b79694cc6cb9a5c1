"""A store that is made while a server already answers, such as the index of a folder."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

import anyio

from oprag.mcp.searched import Searched

__all__ = ["Loading"]

_INTERVAL = 0.25  # seconds between two reports of progress

Make = Callable[[Callable[[int, int], None]], Searched]


class Loading:
    """Makes a store in a thread of its own, from now on.

    Args:
        make: Makes it, given a function to which it reports how many of how many steps are done.
    """

    def __init__(self, make: Make) -> None:
        self._future: Future[Searched] = Future()
        self._done, self._total = 0, 0
        # A daemon, because a client that closes the connection does not wait.
        Thread(target=self._run, args=(make,), daemon=True).start()

    async def wait(self, context: Any) -> Searched:
        """Return the store when it is made; until then, report progress to the client.

        Raises:
            Exception: What `make` raised.
        """
        while not self._future.done():
            await context.report_progress(self._done, self._total or None)
            await anyio.sleep(_INTERVAL)
        return self._future.result()

    def _run(self, make: Make) -> None:
        try:
            self._future.set_result(make(self._report))
        except BaseException as error:  # noqa: BLE001 - each call raises it
            self._future.set_exception(error)

    def _report(self, done: int, total: int) -> None:
        self._done, self._total = done, total
