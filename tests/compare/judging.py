"""A server that counts what models and judges are asked, whichever process asks."""

from __future__ import annotations

import hashlib
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from oprag.compare.providers.specs import ModelSpec

__all__ = ["Served", "asks", "judging_models", "serving"]


class Served:
    """What was asked, by who asked."""

    def __init__(self) -> None:
        self.address = ""
        self.calls: Counter[str] = Counter()
        self.prompts: dict[str, list[str]] = {"reader": [], "judge": []}
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        return sum(self.calls.values())

    def reply(self, who: str, text: str) -> str:
        """The reply, another one for each prompt."""
        number = int(hashlib.sha256(f"{who} {text}".encode()).hexdigest()[:8], 16)
        with self._lock:
            self.calls[who] += 1
            self.prompts[who].append(text)
        return f"Since it is so.\nGRADE: {'CPI'[number % 3]}" if who == "judge" else f"Answer {number}"


def asks(address: str, who: str) -> Callable[[str], str]:
    """A model that asks the server."""
    return partial(_ask, f"{address}/{who}")


def _ask(address: str, text: str) -> str:
    with urllib.request.urlopen(address, text.encode()) as reply:
        said: str = reply.read().decode()
    return said


def judging_models(served: Served) -> dict[str, Any]:
    """The models of an experiment that ask the server, from any process."""
    return {name: ModelSpec(asks(served.address, name), f"{name} at {served.address}") for name in ("reader", "judge")}


@contextmanager
def serving() -> Iterator[Served]:
    """A server on the loopback interface."""
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            content = served.reply(self.path.strip("/"), text).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served.address = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            http.shutdown()
            thread.join()
