"""A server that speaks OpenAI's protocol, and fails when and how it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ChatServer", "Fault", "serve"]

BROKEN = 0


@dataclass(frozen=True)
class Fault:
    """What the server does in place of a reply.

    Attributes:
        status: The status of HTTP; 0 closes the connection without a word.
        after: Seconds that it takes.
        headers: The headers.
        code: What OpenAI calls the error.
        body: What is sent in place of an error of OpenAI.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    code: str = "fault"
    after: float = 0.0
    body: str | None = None


@dataclass
class ChatServer:
    """What was asked, and what will go wrong: the next request gets the first fault that is left."""

    address: str
    faults: list[Fault] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.requests]


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    text = f"You said: {request['messages'][-1]['content']}"
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }


@contextmanager
def serve() -> Iterator[ChatServer]:
    """A server on the loopback interface."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                server.requests.append(request)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                fault = server.faults.pop(0) if server.faults else None
            if fault is not None:
                time.sleep(fault.after)
            if fault is None:
                self._send(200, {}, json.dumps(_reply(request)))
            elif fault.status == BROKEN:
                self.close_connection = True
            else:
                error = json.dumps({"error": {"message": fault.code, "code": fault.code}})
                self._send(fault.status, fault.headers, error if fault.body is None else fault.body)

        def _send(self, status: int, headers: dict[str, str], body: str) -> None:
            content = body.encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    lock = threading.Lock()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = ChatServer(f"http://127.0.0.1:{http.server_address[1]}/v1")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
