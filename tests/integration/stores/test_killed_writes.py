"""A program is killed while it writes positions; the next call finishes, and nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.stores.killed import CHUNKS, STORES, TEXTS

pytestmark = pytest.mark.integration


def run(name: str, place: str, step: str) -> tuple[int, Any]:
    """How the program ended, and what it printed."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.integration.stores.killed", name, place, step]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout.splitlines()[-1])


def cosine(first: list[float], second: list[float]) -> float:
    return float(np.dot(first, second) / (np.linalg.norm(first) * np.linalg.norm(second)))


@pytest.mark.parametrize("name", STORES)
def test_the_next_call_finishes(name: str, tmp_path: Path, request: pytest.FixtureRequest):
    known = STORES[name]
    place = request.getfixturevalue("postgres")("psycopg") if known.on_server else str(tmp_path)
    code, before = run(name, place, "fill")
    assert code == -signal.SIGKILL
    assert len(before) == CHUNKS
    assert not any(ours for *_, ours in before)
    code, after = run(name, place, "finish")
    assert code == 0
    for state in ("left", "finished"):
        for old, new in zip(before, after[state], strict=True):
            assert new[:2] == old[:2]
            # Qdrant rounds the vectors of a folder when it opens it, and normalizes them when it searches.
            assert cosine(old[2], new[2]) == pytest.approx(1, abs=1e-6) if "qdrant" in name else old[2] == new[2]
    # Each chunk has all of its new metadata, or nothing of them.
    complete = [row[3] for row in after["finished"]]
    assert all(row[3] in ({}, whole) for row, whole in zip(after["left"], complete, strict=True))
    written = sum(bool(row[3]) for row in after["left"])
    assert (written, after["written"]) == (known.written, CHUNKS - known.written)
    at = {text: number for number, text in enumerate(TEXTS)}
    assert [whole["chunk_index"] for whole in complete] == [at[row[0]] for row in after["finished"]]
    places = [at[text] for text in after["found"]]
    assert places == sorted(places)
    assert (len(places), after["told"]) == (12, [])
