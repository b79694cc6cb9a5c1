"""The tables of work that is done once: replies, indexes and retrievals."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from oprag.compare.db.checking import CHECKED, reply_digest
from oprag.compare.db.records import FailedCall, Hit, IndexRecord, Piece, Reply, Retrieval
from oprag.compare.db.text import storable
from oprag.masking import without_keys
from oprag.methods.model_calls import Completion, Usage

__all__ = [
    "now",
    "read_hits",
    "read_index",
    "read_reply",
    "reply_keys",
    "unknown_replies",
    "write_failed_call",
    "write_hits",
    "write_index",
    "write_replies",
]

_REPLY = f"INTO replies ({CHECKED}, model, step, digest, seconds, money, run, at) VALUES ({', '.join('?' * 14)})"


def read_reply(connection: sqlite3.Connection, key: str) -> Completion | None:
    """The reply with this address, if it is there and is what was written."""
    row = connection.execute(f"SELECT {CHECKED}, digest, seconds FROM replies WHERE key = ?", [key]).fetchone()
    if row is None:
        return None
    *checked, check, seconds = row
    if reply_digest(*checked) != check:
        return None
    _, text, input_tokens, output_tokens, cached_tokens, estimated, finish_reason = checked
    usage = Usage(input_tokens, output_tokens, cached_tokens, bool(estimated))
    return Completion(text, usage=usage, seconds=seconds, finish_reason=finish_reason)


def reply_keys(connection: sqlite3.Connection) -> set[str]:
    """The addresses of all replies."""
    return {key for (key,) in connection.execute("SELECT key FROM replies")}


def unknown_replies(connection: sqlite3.Connection, replies: Sequence[Reply]) -> list[Reply]:
    """The replies that are not there, the first one of each address."""
    first: dict[str, Reply] = {}
    for reply in replies:
        first.setdefault(reply.key, reply)
    return [
        reply
        for key, reply in first.items()
        if connection.execute("SELECT 1 FROM replies WHERE key = ?", [key]).fetchone() is None
    ]


def write_replies(connection: sqlite3.Connection, replies: Sequence[Reply], run: int) -> list[Completion]:
    """Write replies, but for those where another process was faster; give those that are there."""
    at = now()
    rows = {reply.key: _reply_row(reply, run, at) for reply in replies}
    written = connection.executemany(f"INSERT {_REPLY} ON CONFLICT (key) DO NOTHING", rows.values()).rowcount
    if written == len(replies):
        return [reply.completion for reply in replies]
    kept: list[Completion] = []
    for reply in replies:
        known = read_reply(connection, reply.key)
        if known is None:
            # What is there is not what was written.
            connection.execute(f"REPLACE {_REPLY}", rows[reply.key])
        kept.append(known or reply.completion)
    return kept


def _reply_row(reply: Reply, run: int, at: str) -> Sequence[Any]:
    checked = (reply.key, storable(reply.text), *reply.usage[:3], int(reply.usage.estimated), reply.finish_reason)
    return (*checked, reply.model, reply.step, reply_digest(*checked), reply.seconds, reply.money, run, at)


def write_failed_call(connection: sqlite3.Connection, call: FailedCall, run: int) -> None:
    """Write why a call failed."""
    safe = call._replace(message=without_keys(call.message))
    connection.execute(f"INSERT INTO failed_calls VALUES (NULL, {_marks(8)})", [*map(storable, safe), run, now()])


def read_index(connection: sqlite3.Connection, key: str) -> list[Piece] | None:
    """The chunks of an index, if it is there."""
    row = connection.execute("SELECT id, chunks FROM indexes WHERE key = ?", [key]).fetchone()
    if row is None:
        return None
    rows = connection.execute(
        'SELECT document, page, start, "end", tokens FROM chunks WHERE "index" = ? ORDER BY row', row[:1]
    ).fetchall()
    return [Piece(*piece) for piece in rows] if len(rows) == row[1] else None


def write_index(connection: sqlite3.Connection, index: IndexRecord) -> None:
    """Write how documents were split."""
    about = (index.splitter, index.size, index.overlap, index.tokenizer, len(index.pieces))
    tokens = sum(piece.tokens for piece in index.pieces)
    connection.execute(
        f"INSERT OR IGNORE INTO indexes VALUES (NULL, {_marks(8)})",
        [index.key, storable(json.dumps(list(index.documents), ensure_ascii=False)), *about, tokens],
    )
    (number,) = connection.execute("SELECT id FROM indexes WHERE key = ?", [index.key]).fetchone()
    connection.executemany(
        f"INSERT OR REPLACE INTO chunks VALUES ({_marks(7)})",
        ((number, row, *piece) for row, piece in enumerate(index.pieces)),
    )


def read_hits(connection: sqlite3.Connection, key: str) -> list[Hit] | None:
    """What was found for a question, if it is there.

    Raises:
        ValueError: It is not what was written.
    """
    row = connection.execute("SELECT hits FROM retrievals WHERE key = ?", [key]).fetchone()
    try:
        return None if row is None else [Hit(int(number), score) for number, score in json.loads(row[0])]
    except (ValueError, TypeError) as error:
        raise ValueError(f"retrieval {key}: {error}") from error


def write_hits(connection: sqlite3.Connection, found: Sequence[Retrieval]) -> None:
    """Write what was found for questions, in indexes that are there."""
    for one in found:
        about = (one.key, one.embedder, one.search, one.store, storable(one.question), one.depth)
        connection.execute(
            "INSERT OR REPLACE INTO retrievals SELECT ?, id, ?, ?, ?, ?, ?, ? FROM indexes WHERE key = ?",
            (*about, json.dumps(one.hits), one.index),
        )


def now() -> str:
    """The time, as it is written down: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _marks(count: int) -> str:
    return ", ".join("?" * count)
