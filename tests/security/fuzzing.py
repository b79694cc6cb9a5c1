"""What the fuzzers of this folder share; they try few cases in `make test`, and 10,000 in `make fuzz`."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

NAMES = [
    *("os:system", "evil:run", "package.inner:f", "subprocess:getoutput", "builtins:exec", "local:system", "evil", ":"),
    *(
        "huggingface:gpt2",
        "huggingface:secret",
        "huggingface:/dev/zero",
        "transformers:gpt2",
        "gguf:/dev/zero",
        "local",
    ),
    *("openai:gpt", "litellm:x", "ollama:http://evil.example", "../secret", "/dev/zero", "/etc/passwd", "link", ".env"),
    *("http://evil.example", "http://localhost@evil.example", "{0.__class__}", "", "none", "tiktoken:none_base", "{"),
]
VALUES = [
    *(f'"{name}"' for name in (*NAMES, "x" * 5_000, "\\u0000", "\\u202e\\u001b[2J")),
    *("true", "inf", "nan", "-1", "0", "0x10", "9223372036854775807", "99999999999999999999", "1e308", "07:32:00"),
    *("[]", "{}", "[[[[]]]]", '{a = "b"}', "[" * 2_000, "1979-05-27", "[1, 2, 3]", "[0.1, 2.0]", '["evil:run"]'),
    *('["os:system", "token_f1"]', '["a", 1, {b = 2}]', '{use = "os:system"}', "{a = {trust_remote_code = true}}"),
    str([*range(1, 40)]),
]
"""Values of TOML."""
BYTES = [b"\0", b"\n", b'"', b"=", b"[", b"]", b"{", b".", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x1b", b"'''"]


def cases(few: int = 50) -> int:
    """Number of cases, by default few of them."""
    return int(os.environ.get("OPRAG_FUZZ_CASES", few))


def mutated(text: str, chance: random.Random, keys: Sequence[str], tables: Sequence[str]) -> bytes:
    """A TOML file with a few lines and bytes changed, and sometimes cut; the keys and tables are added to it."""
    lines = text.splitlines()
    for _ in range(chance.randint(0, 3)):
        place, value = chance.randrange(len(lines)), chance.choice(VALUES)
        key, added = lines[place].partition(" = ")[0], f"{chance.choice(keys)} = {value}"
        lines[place : place + 1] = chance.choice(
            [
                [f"{key} = {value}"],
                [f"{key} = {value}"],
                [f"{key}.{key} = {value}"],
                [f'"{key}\\u001b" = 1'],
                [f"[[{key.strip('[]')}]]"],
                [lines[place], added],
                [chance.choice(tables), added, lines[place]],
                [chance.choice(lines)],
                [],
            ]
        )
    content = bytearray("\n".join(lines).encode())
    for _ in range(chance.choice([0, 0, 1, 3])):
        place = chance.randrange(len(content))
        content[place : place + chance.randint(0, 4)] = chance.choice(BYTES)
    return bytes(content[: chance.choice([None, None, None, chance.randrange(len(content))])])


@contextmanager
def permissive(path: Path) -> Iterator[sqlite3.Connection]:
    """A database whose tables take what they do not permit, as in a file that somebody else made; then as before."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        schema = connection.execute("SELECT sql, rowid FROM sqlite_schema").fetchall()
        loose = "replace(replace(replace(sql, ' NOT NULL', ''), ') STRICT, ', ') '), ') STRICT', ')')"
        connection.execute(f"UPDATE sqlite_schema SET sql = {loose} WHERE type = 'table'")
        connection.execute("PRAGMA writable_schema = RESET")
        yield connection
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE rowid = ?", schema)
        connection.execute("PRAGMA writable_schema = RESET")


def check_message(error: Exception, seed: int) -> None:
    """A message is short, and a terminal shows it as it is."""
    message = str(error)
    assert len(message) < 20_000, seed
    assert "\x1b" not in message, seed
    assert "\u202e" not in message, seed
