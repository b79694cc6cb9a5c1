"""A stand-in for an index of Pinecone: the requests and responses of its published HTTP interface (2025-04).

It was written from the documentation and from what Pinecone's Python client sends; it was never compared with the
service. What it takes over of the service: an unknown id is missing from what is fetched; numbers in metadata come back
as floats, and what is no string, number, boolean or list of strings is refused; errors have a code and a message.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

__all__ = ["API_KEY", "PineconeStub", "Request", "serve_pinecone"]

API_KEY = "stub-key"
_USAGE = {"usage": {"readUnits": 1}}


class Request(NamedTuple):
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    query: Mapping[str, list[str]]


class _Refusal(Exception):  # noqa: N818 - a response, not a fault of this program
    """A response that says no."""

    def __init__(self, status: HTTPStatus, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class PineconeStub(ThreadingHTTPServer):
    """An index.

    Attributes:
        requests: What came in.
        fails: The next requests for which this holds get the status 500.
        late: How many of the next counts come too early to have what was put in.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self.fails: Callable[[Request], bool] = lambda request: False
        self.late = 0
        self._spaces: dict[str, dict[str, dict[str, Any]]] = {}

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def namespaces(self) -> list[str]:
        """Those that hold something."""
        return [name for name, space in self._spaces.items() if space]

    def answer(self, request: Request) -> Any:
        self.requests.append(request)
        if request.headers.get("Api-Key") != API_KEY:
            raise _Refusal(HTTPStatus.UNAUTHORIZED, 16, "Invalid API Key")
        if self.fails(request):
            raise _Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, 13, "the index is out of order")
        known = {
            ("POST", "/vectors/upsert"): self._upsert,
            ("GET", "/vectors/fetch"): self._fetch,
            ("POST", "/query"): self._query,
            ("POST", "/describe_index_stats"): self._stats,
            ("POST", "/vectors/delete"): self._delete,
        }
        if (request.method, request.path) not in known:
            raise _Refusal(HTTPStatus.NOT_FOUND, 5, f"nothing at {request.path}")
        return known[request.method, request.path](request)

    def _space(self, name: str) -> dict[str, dict[str, Any]]:
        return self._spaces.setdefault(name, {})

    def _upsert(self, request: Request) -> Any:
        space = self._space(request.body.get("namespace", ""))
        for vector in request.body["vectors"]:
            metadata = {key: _stored(key, value) for key, value in vector.get("metadata", {}).items()}
            values = np.asarray(vector["values"], np.float32)
            space[vector["id"]] = {"id": vector["id"], "values": values.tolist(), "metadata": metadata}
        return {"upsertedCount": len(request.body["vectors"])}

    def _fetch(self, request: Request) -> Any:
        name = request.query.get("namespace", [""])[0]
        space = self._space(name)
        found = {key: space[key] for key in request.query["ids"] if key in space}
        return {"vectors": found, "namespace": name, **_USAGE}

    def _stats(self, request: Request) -> Any:
        self.late, late = max(0, self.late - 1), self.late > 0
        counts = {} if late else {name: {"vectorCount": len(self._space(name))} for name in self.namespaces}
        total = sum(count["vectorCount"] for count in counts.values())
        return {"namespaces": counts, "totalVectorCount": total, "indexFullness": 0.0}

    def _delete(self, request: Request) -> Any:
        space = self._space(request.body.get("namespace", ""))
        for key in list(space) if request.body.get("deleteAll") else request.body.get("ids", []):
            space.pop(key, None)
        return {}

    def _query(self, request: Request) -> Any:
        body, name = request.body, request.body.get("namespace", "")
        rows = [row for row in self._space(name).values() if _matches(row["metadata"], body.get("filter") or {})]
        shown = ["id", *(["values"] if body.get("includeValues") else [])]
        shown += ["metadata"] if body.get("includeMetadata") else []
        scores = _cosines(np.array(body["vector"]), np.array([row["values"] for row in rows])) if rows else np.array([])
        matches = [
            {"values": [], **{key: rows[row][key] for key in shown}, "score": float(scores[row])}
            for row in np.argsort(-scores)[: body["topK"]].tolist()
        ]
        return {"results": [], "matches": matches, "namespace": name, **_USAGE}


class _Handler(BaseHTTPRequestHandler):
    server: PineconeStub
    protocol_version = "HTTP/1.1"
    # A head and a body are two packets, and would otherwise wait for each other.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *args: Any) -> None:
        """Nothing is printed."""

    def _answer(self, body: Any) -> None:
        address, status = urlsplit(self.path), HTTPStatus.OK
        request = Request(self.command, address.path, dict(self.headers), body, parse_qs(address.query))
        try:
            answer = self.server.answer(request)
        except _Refusal as refusal:
            status, answer = refusal.status, {"code": refusal.code, "message": str(refusal), "details": []}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serve_pinecone() -> Iterator[PineconeStub]:
    """An empty index, while the block runs."""
    with PineconeStub() as stub:
        thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield stub
        finally:
            stub.shutdown()
            thread.join()


def _stored(key: str, value: Any) -> Any:
    """A value of metadata as it comes back."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str | bool) or (isinstance(value, list) and all(isinstance(part, str) for part in value)):
        return value
    message = f"Metadata value must be a string, number, boolean or list of strings, got {value!r} for field {key!r}"
    raise _Refusal(HTTPStatus.BAD_REQUEST, 3, message)


def _matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Equal values, and `$gte`: the part of the published filters that tests use."""
    return all(
        metadata[key] >= condition["$gte"] if isinstance(condition, dict) else metadata.get(key) == condition
        for key, condition in wanted.items()
    )


def _cosines(vector: Any, rows: Any) -> Any:
    return rows @ vector / np.linalg.norm(rows, axis=1) / np.linalg.norm(vector)
