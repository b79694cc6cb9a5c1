"""Caches on disk: an attacker may plant or change files in a folder that is shared."""

import asyncio
import contextlib
import gc
import os
import sqlite3
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from oprag import VectorCache
from oprag._internal.warn import forget as forget_warnings
from oprag.embedding.vector_cache import text_keys
from oprag.errors import CacheWarning
from oprag.langchain import OrderPreservingRetriever
from tests.helpers import WordEmbedder

if sys.platform != "win32":
    import resource

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions, links and pipes of Unix")

PAIRS, MODEL = WordEmbedder(2), WordEmbedder(64)


def retriever(path):
    """One whose store gives no vectors, so that they are embedded, and kept in a file."""
    found = [Document(f"text {number}", metadata={"source": "a", "start_index": 9 * number}) for number in range(3)]
    return OrderPreservingRetriever(
        retriever=RunnableLambda(lambda question: found),
        embeddings=WordEmbedder(),
        vector_cache=VectorCache(path, namespace="words"),
        similarity_threshold=-1.0,
    )


def answered(path):
    """What a search warns about when its vectors cannot be kept; it has its vectors all the same."""
    forget_warnings()
    ours = retriever(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert len(ours.invoke("text 1")) == 3
        assert len(asyncio.run(ours.ainvoke("text 2"))) == 3
    assert {warning.category for warning in caught} <= {CacheWarning}
    return [str(warning.message) for warning in caught]


@contextlib.contextmanager
def a_full_disk():
    """No file can grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_search_goes_on_without_its_cache_on_a_full_disk(tmp_path):
    with a_full_disk():
        (message,) = answered(tmp_path / "vectors.db")
    assert "cannot write the vector cache" in message
    assert "vectors are computed and not cached" in message


def text_file(path):
    path.write_bytes(b"no database at all, but long enough to look like a file" * 50)


def broken_pages(path):
    VectorCache(path, namespace="words").put(
        WordEmbedder(8), [f"text {number}" for number in range(500)], np.ones((500, 8))
    )
    gc.collect()
    data = bytearray(path.read_bytes())
    data[4_096:] = b"\xee" * (len(data) - 4_096)
    path.write_bytes(data)


def read_only(path):
    VectorCache(path, namespace="other").put(PAIRS, ["text"], [[1, 2]])
    gc.collect()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    path.chmod(0o400)
    if os.geteuid() == 0:
        pytest.skip("root can write to every file")


def beside(ending):
    def make(path):
        VectorCache(path, namespace="words").put(PAIRS, ["text"], [[1, 2]])
        gc.collect()
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()
        os.mkfifo(path.with_name(path.name + ending))

    return make


@pytest.mark.parametrize(
    "make",
    [
        *(text_file, broken_pages, read_only, os.mkdir, os.mkfifo),
        *(pytest.param(beside(ending), id=f"pipe{ending}") for ending in ("-wal", "-shm", "-journal")),
        lambda path: path.symlink_to("/dev/zero"),
    ],
)
def test_a_search_goes_on_without_a_cache_that_cannot_be_used(tmp_path, make):
    make(tmp_path / "vectors.db")
    (message,) = answered(tmp_path / "vectors.db")
    assert str(tmp_path / "vectors.db") in message


def test_a_search_waits_seconds_for_a_cache_that_another_process_never_ends_to_write(tmp_path, monkeypatch):
    path, waits = tmp_path / "vectors.db", []
    connect: Any = sqlite3.connect
    VectorCache(path, namespace="other").put(PAIRS, ["text"], [[1, 2]])
    writer = connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    def impatient(*given, timeout, **more):
        waits.append(timeout)
        return connect(*given, timeout=0, **more)

    monkeypatch.setattr(sqlite3, "connect", impatient)
    with contextlib.closing(writer):
        (message,) = answered(path)
    assert "database is locked" in message
    assert sum(waits) <= 5


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
LARGE = "length(zeroblob(500000000))"
A_VIEW = f"CREATE VIEW vectors AS {ENDLESS} SELECT 1 AS embedder, x AS hash, x AS vector FROM n"
IN_OTHER_LETTERS = f"CREATE VIEW Embedders AS {ENDLESS} SELECT x AS number, x AS name, 1 AS dimension FROM n"
A_TRIGGER = f"CREATE TRIGGER t AFTER INSERT ON vectors BEGIN SELECT ({ENDLESS} SELECT max(x) FROM n); END"


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(["DROP TABLE vectors", A_VIEW], id="view"),
        pytest.param(["DROP TABLE embedders", IN_OTHER_LETTERS], id="view in other letters"),
        pytest.param([A_TRIGGER], id="trigger"),
        pytest.param([f"CREATE INDEX i ON vectors ({LARGE})"], id="index"),
        pytest.param([f"ALTER TABLE vectors ADD COLUMN more AS ({LARGE})"], id="computed column"),
        pytest.param([f"ALTER TABLE embedders ADD COLUMN more CHECK ({LARGE})"], id="check"),
    ],
)
def test_a_planted_file_whose_tables_compute_is_not_used(tmp_path, statements):
    path = tmp_path / "vectors.db"
    VectorCache(path, namespace="words").put(PAIRS, ["text"], [[1, 2]])
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    (message,) = answered(path)
    assert "its tables are not those that oprag creates" in message


def test_tables_that_a_user_adds_for_themselves_do_no_harm(tmp_path):
    path = tmp_path / "vectors.db"
    VectorCache(path, namespace="words").put(PAIRS, ["text"], [[1, 2]])
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (a)")
        connection.execute("CREATE VIEW names AS SELECT name FROM embedders")
    assert VectorCache(path, namespace="words").get(PAIRS, ["text"])[0] is not None


@pytest.mark.parametrize("way", ["delete", "clear"])
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_what_is_forgotten_is_gone_from_the_disk(tmp_path, way, journal):
    path, secret = tmp_path / "vectors.db", np.full((1, 64), 1234.5, dtype=np.float32)
    cache = VectorCache(path, namespace="words")
    cache.put(MODEL, [f"text {number}" for number in range(300)], np.ones((300, 64)))
    cache.put(MODEL, ["the secret"], secret)
    # A vector that was replaced is still in a free page.
    cache.put(MODEL, ["text 7"], secret + 1)
    cache.put(MODEL, ["text 7"], np.ones((1, 64)))
    if journal == "DELETE":
        del cache
        gc.collect()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        cache = VectorCache(path, namespace="words")
    traces = [secret.tobytes(), (secret + 1).tobytes(), *text_keys(["the secret"], "document")]
    assert any(trace in part.read_bytes() for part in tmp_path.iterdir() for trace in traces)
    assert (cache.delete(["the secret"]) if way == "delete" else cache.clear()) in (1, 301)
    # While the file is still open.
    assert not any(trace[:64] in part.read_bytes() for part in tmp_path.iterdir() for trace in traces)
    assert len(cache) == (300 if way == "delete" else 0)
