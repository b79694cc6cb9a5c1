"""What clients and the model server really said to each other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from oprag.methods import Usage


@dataclass
class Exchange:
    """One request to the model server, and what came back."""

    request: dict[str, Any]
    started: float = field(default_factory=time.perf_counter)
    ended: float | None = None
    body: bytearray = field(default_factory=bytearray)

    @property
    def messages(self) -> list[tuple[str, str]]:
        return [(message["role"], message["content"]) for message in self.request["messages"]]

    @property
    def text(self) -> str:
        """All messages, as one text."""
        return "\n".join(content for _, content in self.messages)

    @property
    def streamed(self) -> bool:
        return bool(self.request.get("stream"))

    @property
    def reply(self) -> str:
        part = "delta" if self.streamed else "message"
        choices = [choice for event in self._events() for choice in event["choices"]]
        return "".join(choice[part].get("content") or "" for choice in choices)

    @property
    def usage(self) -> Usage:
        """The figures of the server; an error where it gave none."""
        (usage,) = (event["usage"] for event in self._events() if event.get("usage"))
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        return Usage(usage["prompt_tokens"], usage["completion_tokens"], cached)

    def _events(self) -> list[dict[str, Any]]:
        text = self.body.decode()
        if not self.streamed:
            return [json.loads(text)]
        lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
        return [json.loads(line) for line in lines]


class Wire:
    """HTTP clients that keep every exchange."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.client = httpx.Client(transport=_Transport(self.exchanges), timeout=120)

    @property
    def usage(self) -> Usage:
        """The server's figures for all exchanges."""
        total = Usage()
        for exchange in self.exchanges:
            total = total.plus(exchange.usage)
        return total


class _Transport(httpx.HTTPTransport):
    def __init__(self, exchanges: list[Exchange]) -> None:
        super().__init__()
        self._exchanges = exchanges

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(json.loads(request.content))
        self._exchanges.append(exchange)
        response = super().handle_request(request)
        return _copied(response, _Tee(response.stream, exchange))


def _copied(response: httpx.Response, stream: Any) -> httpx.Response:
    return httpx.Response(response.status_code, headers=response.headers, stream=stream, extensions=response.extensions)


class _Tee(httpx.SyncByteStream):
    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            self._exchange.body += part
            yield part
        self._exchange.ended = time.perf_counter()

    def close(self) -> None:
        self._stream.close()
