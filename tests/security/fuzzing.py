"""What the fuzzers of this folder share; they try few cases in `make test`, and 10,000 in `make fuzz`."""

from __future__ import annotations

import os
import random

BYTES = [b"\0", b"\n", b'"', b"=", b"[", b"]", b"{", b".", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x1b", b"'''"]


def cases() -> int:
    return int(os.environ.get("OPRAG_FUZZ_CASES", "50"))


def damaged(lines: list[str], chance: random.Random) -> bytes:
    """Lines of TOML with a few bytes changed, and sometimes cut."""
    content = bytearray("\n".join(lines).encode())
    for _ in range(chance.choice([0, 0, 1, 3])):
        place = chance.randrange(len(content))
        content[place : place + chance.randint(0, 4)] = chance.choice(BYTES)
    return bytes(content[: chance.choice([None, None, None, chance.randrange(len(content))])])


def check_message(error: Exception, seed: int) -> None:
    """A message is short, and a terminal shows it as it is."""
    message = str(error)
    assert len(message) < 20_000, seed
    assert "\x1b" not in message, seed
    assert "\u202e" not in message, seed
