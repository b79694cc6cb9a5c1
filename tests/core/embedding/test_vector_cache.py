import copy
import gc
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from oprag import VectorCache
from oprag.embedding.cache_file import _CACHE
from oprag.embedding.vector_cache import text_keys
from oprag.errors import CacheError, OptionError
from tests.helpers import WordEmbedder


def vectors(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    matrix: np.ndarray = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return matrix


MODEL, PAIRS, OTHER = WordEmbedder(dimension=8), WordEmbedder(dimension=2), WordEmbedder(dimension=2)


def in_file(path: Path | str, namespace: str = "pairs") -> VectorCache:
    return VectorCache(path, namespace=namespace)


@pytest.fixture(params=["memory", "file"])
def cache(request, tmp_path) -> VectorCache:
    return in_file(tmp_path / "vectors.db") if request.param == "file" else VectorCache()


def lists(found) -> list[list[float] | None]:
    return [None if vector is None else vector.tolist() for vector in found]


def test_vectors_come_back_to_the_last_bit(cache):
    texts = [f"text {number}" for number in range(1_200)]
    given = vectors(1_200)
    cache.put(MODEL, texts, given)
    found = cache.get(MODEL, [*texts, "another"])
    assert lists(found[:-1]) == given.tolist()
    assert found[-1] is None
    assert all(vector.dtype == np.float32 for vector in found[:-1])
    assert len(cache) == 1_200


def test_what_is_not_there_is_none(cache):
    assert cache.get(PAIRS, ["a", "b"]) == [None, None]
    assert cache.get(PAIRS, []) == []
    cache.put(PAIRS, [], [])
    assert len(cache) == 0


def test_kinds_are_kept_apart(cache):
    cache.put(PAIRS, ["text"], [[1, 0]])
    assert cache.get(PAIRS, ["text"], "question") == [None]
    cache.put(PAIRS, ["text"], [[0, 1]], "question")
    assert lists(cache.get(PAIRS, ["text"])) == [[1, 0]]
    assert lists(cache.get(PAIRS, ["text"], "question")) == [[0, 1]]


@pytest.mark.parametrize("text", ["", "\0", "\ud83d", "naïve 🙂", "x" * 1_000_000], ids=range(5))
def test_any_text_has_a_place(cache, text):
    cache.put(PAIRS, [text], [[1, 2]])
    assert lists(cache.get(PAIRS, [text, text + "."])) == [[1, 2], None]


def test_vectors_cannot_be_changed_from_outside(cache):
    given = np.array([[1.0, 2.0]], dtype=np.float32)
    cache.put(PAIRS, ["text"], given)
    given[0, 0] = 9
    (found,) = cache.get(PAIRS, ["text"])
    assert lists([found]) == [[1, 2]]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1, 2]], "expected 2 vectors from the caller, got an array of"),
        ([[], []], "expected 2 vectors from the caller, got an array of"),
        ([[[1, 2]], [[1, 2]]], "expected 2 vectors from the caller, got an array of"),
        ([["a", "b"], [1, 2]], "got something that is not a matrix of numbers"),
        ([[1, 2], [3]], "got something that is not a matrix of numbers"),
        *(([[1, 2], [1, bad]], "text 1 has values that are not finite") for bad in (math.nan, math.inf, 1e39, None)),
        *(([[bad, bad], [1, 2]], "text 0 is all zeros, so it has no cosine similarity") for bad in (-0.0, 1e-60)),
    ],
    ids=str,
)
def test_vectors_that_cannot_be_used_are_refused(cache, given, message):
    with pytest.raises(CacheError, match=f"{message}.*; no vector was stored"):
        cache.put(PAIRS, ["a", "b"], given)
    assert len(cache) == 0


def test_threads_may_share_it(cache):
    def work(number: int) -> list[list[float] | None]:
        texts = [f"{number % 4}-{place}" for place in range(50)]
        given = vectors(50, seed=number % 4)
        cache.put(MODEL, texts, given)
        return lists(cache.get(MODEL, texts))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(32)))
    assert all(result == vectors(50, seed=number % 4).tolist() for number, result in enumerate(results))
    assert len(cache) == 200


def test_a_copy_of_what_holds_it_shares_it(cache):
    assert copy.deepcopy({"cache": cache})["cache"] is cache


def test_texts_are_forgotten_as_what_they_were_embedded(cache):
    texts = [f"text {number}" for number in range(700)]
    cache.put(MODEL, [*texts, "kept"], vectors(701))
    cache.put(MODEL, ["text 1", "kept"], vectors(2), "question")
    assert cache.delete(iter(texts)) == 701
    assert cache.delete([*texts, "never seen"]) == 0
    assert cache.get(MODEL, texts) == [None] * 700
    assert cache.get(MODEL, ["text 1"], "question") == [None]
    assert lists(cache.get(MODEL, ["text 1", "kept"])) == [None, vectors(701)[-1].tolist()]
    assert len(cache) == 2
    # What was forgotten has room again.
    cache.put(MODEL, ["text 1"], vectors(1))
    assert len(cache) == 3


def test_everything_is_forgotten(cache):
    assert cache.clear() == 0
    cache.put(PAIRS, ["a", "b"], [[1, 2], [3, 4]])
    assert cache.clear() == 2
    assert len(cache) == 0
    # Of which model the vectors were, too.
    cache.put(MODEL, ["a"], vectors(1))
    assert lists(cache.get(MODEL, ["a", "b"])) == [vectors(1)[0].tolist(), None]


def test_one_text_in_place_of_several_is_refused(cache):
    cache.put(PAIRS, ["a", "b"], [[1, 2], [3, 4]])
    with pytest.raises(OptionError, match=r"texts must be a list of strings, got a string; pass \[text\]"):
        cache.delete("ab")
    with pytest.raises(OptionError, match="texts must be strings, got 1"):
        cache.delete(["ab", 1])
    assert len(cache) == 2


# In memory.


def test_what_is_forgotten_makes_room():
    cache = VectorCache(max_bytes=2 * 320)
    cache.put(PAIRS, ["a", "b"], [[1, 2], [3, 4]])
    assert cache.delete(["a"]) == 1
    cache.put(PAIRS, ["c"], [[5, 6]])
    assert lists(cache.get(PAIRS, ["b", "c"])) == [[3, 4], [5, 6]]


def test_in_memory_each_object_is_a_model_of_its_own():
    cache, slots = VectorCache(), ("a model", "without weak references")
    for model, vector in ((PAIRS, [1, 2]), (OTHER, [3, 4]), (MODEL, [1] * 8), (slots, [5, 6])):
        cache.put(model, ["text"], [vector])
    found = [lists(cache.get(model, ["text"])) for model in (PAIRS, OTHER, MODEL, slots)]
    assert found == [[[1, 2]], [[3, 4]], [[1] * 8], [[5, 6]]]
    assert cache.delete(["text"]) == 4


def test_a_new_object_at_the_address_of_an_old_one_is_another_model(cache):
    for _ in range(50):
        model = WordEmbedder(dimension=2)
        assert cache.get(model, ["text"], "question") == [None]
        cache.put(model, ["text"], [[1, 2]], "question")
        cache.put(PAIRS, ["text"], [[1, 2]])
        del model


def test_a_model_is_freed_with_its_vectors():
    cache, model = VectorCache(max_bytes=320), WordEmbedder(dimension=2)
    cache.put(model, ["text"], [[1, 2]])
    freed = weakref.ref(model)
    del model
    cache.put(PAIRS, ["text"], [[1, 2]])
    gc.collect()
    assert freed() is None


def test_the_longest_unused_go_first():
    cache = VectorCache(max_bytes=3 * 320)
    for name in "abc":
        cache.put(PAIRS, [name], [[1, 2]])
    cache.get(PAIRS, ["a"])
    cache.put(PAIRS, ["d"], [[3, 4]])
    assert [vector is not None for vector in cache.get(PAIRS, list("abcd"))] == [True, False, True, True]
    # One that is larger than the bound is there until the next one comes.
    cache.put(PAIRS, ["large"], [[1.0] * 1000])
    assert [vector is not None for vector in cache.get(PAIRS, ["large", "a"])] == [True, False]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "1"])
def test_a_bound_that_is_none_is_refused(value):
    with pytest.raises(OptionError, match="max_bytes must be an integer >= 1"):
        VectorCache(max_bytes=value)


def test_in_another_process_it_starts_empty():
    cache = VectorCache(max_bytes=100)
    cache.put(PAIRS, ["a"], [[1, 2]])
    again = pickle.loads(pickle.dumps(cache))
    assert len(again) == 0
    assert again.path is None


# In a file.


def test_a_file_outlives_its_cache(tmp_path):
    path = tmp_path / "vectors.db"
    in_file(path).put(PAIRS, ["a"], [[1, 2]])
    again = in_file(str(path))
    assert lists(again.get(PAIRS, ["a"])) == [[1, 2]]
    assert again.path == path
    assert lists(pickle.loads(pickle.dumps(again)).get(PAIRS, ["a"])) == [[1, 2]]


def test_only_vectors_of_documents_make_a_file(tmp_path):
    cache = in_file(tmp_path / "vectors.db")
    assert (cache.get(PAIRS, ["a"]), len(cache), cache.delete(["a"]), cache.clear()) == ([None], 0, 0, 0)
    cache.put(PAIRS, ["text"], [[1, 0]], "question")
    assert lists(cache.get(PAIRS, ["text"], "question")) == [[1, 0]]
    assert list(tmp_path.iterdir()) == []


def test_a_file_and_a_namespace_belong_together(tmp_path):
    for none in (None, "", " "):
        with pytest.raises(OptionError, match="requires a name for the embedding model and its settings; pass names"):
            VectorCache(tmp_path / "vectors.db", namespace=none)
    with pytest.raises(OptionError, match="namespace must be"):
        VectorCache(tmp_path / "vectors.db", namespace=5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="namespace is for a cache file; pass path="):
        VectorCache(namespace="pairs")


def test_namespaces_are_kept_apart(tmp_path):
    one, other = in_file(tmp_path / "vectors.db", "one"), in_file(tmp_path / "vectors.db", "other")
    one.put(PAIRS, ["text"], [[1, 0]])
    assert other.get(MODEL, ["text"]) == [None]
    other.put(MODEL, ["text"], vectors(1))
    assert lists(one.get(PAIRS, ["text"])) == [[1, 0]]
    assert lists(other.get(MODEL, ["text"])) == vectors(1).tolist()
    assert (len(one), one.delete(["text"])) == (2, 2)


class Model(WordEmbedder):
    """One that can be asked how often it was, and whose vectors can be turned by an angle."""

    def __init__(self, dimension: int = 2, degrees: float = 0.0) -> None:
        super().__init__(dimension)
        self._degrees = degrees

    def embed_documents(self, texts):
        found = super().embed_documents(texts)
        angle = np.deg2rad(self._degrees)
        return found @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]], np.float32)


@pytest.mark.parametrize("degrees", [5, 90, 180])
@pytest.mark.parametrize("first", ["get", "put"])
def test_another_model_gets_no_vectors_of_a_file_and_puts_none_there(tmp_path, degrees, first):
    cache, again = in_file(tmp_path / "vectors.db"), in_file(tmp_path / "vectors.db")
    cache.put(Model(), ["text"], [[1, 0]])
    other = Model(degrees=degrees)
    ways = {"get": lambda: again.get(other, ["text"]), "put": lambda: again.put(other, ["text", "b"], [[0, 1]] * 2)}
    for way in (first, *ways):
        with pytest.raises(
            CacheError, match=r"vectors of another model.* cosine similarity of .*; use another namespace"
        ):
            ways[way]()
    assert lists(again.get(Model(), ["text", "b"])) == [[1, 0], None]


def test_the_vectors_of_a_model_may_differ_in_their_last_digits(tmp_path):
    in_file(tmp_path / "vectors.db").put(Model(), ["text"], [[1, 0]])
    assert lists(in_file(tmp_path / "vectors.db").get(Model(degrees=0.5), ["text"])) == [[1, 0]]


def test_a_model_is_checked_once(tmp_path):
    model, cache = Model(), in_file(tmp_path / "vectors.db")
    for number in range(3):
        cache.put(model, [f"text {number}"], [[1, 0]])
        assert lists(cache.get(model, ["text 0"])) == [[1, 0]]
    assert len(model.embedded) == 1


@pytest.mark.parametrize(
    "statement", ["DELETE FROM vectors WHERE hash NOT IN (?)", "UPDATE embedders SET dimension = ''"]
)
def test_vectors_that_cannot_be_checked_are_not_used(tmp_path, statement):
    path = tmp_path / "vectors.db"
    in_file(path).put(PAIRS, ["a"], [[1, 2]])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, text_keys(["a"], "document")[: statement.count("?")])
    cache = in_file(path)
    assert cache.get(PAIRS, ["a"]) == [None]
    # Not even after a check is possible again.
    cache.put(OTHER, ["b"], [[3, 4]])
    assert lists(cache.get(OTHER, ["a", "b"])) == [None, [3, 4]]


def test_a_model_that_cannot_be_checked_is_an_error(tmp_path):
    class Failing(Model):
        def embed_documents(self, texts):
            raise ConnectionError("refused")

    cache = in_file(tmp_path / "vectors.db")
    assert cache.get(Failing(), ["a"]) == [None]
    cache.put(PAIRS, ["a"], [[1, 2]])
    for way in (lambda: cache.get(Failing(), ["a"]), lambda: cache.put(Failing(), ["a"], [[1, 2]])):
        with pytest.raises(CacheError, match=r"cannot check a cache file with the embedder words: .*refused"):
            way()


def test_no_text_is_in_the_file(tmp_path):
    path = tmp_path / "vectors.db"
    in_file(path).put(PAIRS, ["a secret sentence"], [[1, 2]])
    for part in tmp_path.iterdir():
        assert b"secret" not in part.read_bytes()


def test_a_file_that_is_deleted_is_made_anew(tmp_path):
    path = tmp_path / "vectors.db"
    cache = in_file(path)
    cache.put(PAIRS, ["a"], [[1, 2]])
    for part in tmp_path.iterdir():
        part.unlink()
    assert cache.get(PAIRS, ["a"]) == [None]
    cache.put(PAIRS, ["b"], [[3, 4]])
    assert lists(in_file(path).get(PAIRS, ["a", "b"])) == [None, [3, 4]]


def test_a_file_that_cannot_be_written_can_be_read(tmp_path):
    path = tmp_path / "vectors.db"
    in_file(path).put(PAIRS, ["a"], [[1, 2]])
    gc.collect()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        cache = in_file(path)
        assert lists(cache.get(PAIRS, ["a", "b"])) == [[1, 2], None]
    finally:
        tmp_path.chmod(0o755)


def test_what_another_process_still_reads_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("oprag.embedding.cache_file._CACHE", _CACHE._replace(patience=0))
    path = tmp_path / "vectors.db"
    cache = in_file(path)
    cache.put(PAIRS, ["a"], [[1, 2]])
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM vectors").fetchall()
        with pytest.raises(CacheError, match="are still on disk, because another process is reading the file"):
            cache.delete(["a"])
    assert len(cache) == 0
    assert cache.delete(["a"]) == 0


def test_another_dimension_is_an_error(tmp_path):
    cache = in_file(tmp_path / "vectors.db")
    cache.put(PAIRS, ["a"], [[1, 2]])
    with pytest.raises(
        CacheError, match=r"vectors of dimension 2, the embedder returned dimension 8; use another"
    ) as caught:
        cache.put(MODEL, ["b", "c"], vectors(2))
    assert caught.value.value == cache.path
    assert isinstance(caught.value, OSError)
    with pytest.raises(CacheError, match=r"vectors of dimension 2, the embedder returned dimension 8"):
        cache.get(MODEL, ["a"])
    with pytest.raises(CacheError, match="returned vectors of dimension 2 before, and now of 8"):
        cache.put(PAIRS, ["b", "c"], vectors(2))
    assert len(cache) == 1
    cache.put(PAIRS, ["b"], [[3, 4]])
    assert len(cache) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"no database at all, but long enough to look like a file" * 50, "is corrupt", id="text"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 5_000, "is corrupt", id="broken header"),
    ],
)
@pytest.mark.parametrize("way", ["get", "put", "len"])
def test_a_file_that_is_none_of_ours_is_an_error(tmp_path, content, message, way):
    path = tmp_path / "vectors.db"
    path.write_bytes(content)
    cache = in_file(path)
    ways = {
        "get": lambda: cache.get(PAIRS, ["a"]),
        "put": lambda: cache.put(PAIRS, ["a"], [[1, 2]]),
        "len": lambda: len(cache),
    }
    with pytest.raises(CacheError, match=message) as caught:
        ways[way]()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param("x'00'", id="another-length"),
        pytest.param("x''", id="empty"),
        pytest.param("7", id="number"),
        pytest.param("'text'", id="text"),
        pytest.param("CAST(x'ff' AS TEXT)", id="no-text"),
        pytest.param("x'0000807f0000807f'", id="infinity"),
        pytest.param("x'0000c07f0000803f'", id="nan"),
        pytest.param("x'0000000000000000'", id="zeros"),
    ],
)
def test_a_bad_row_is_missing_and_replaced(tmp_path, vector):
    path = tmp_path / "vectors.db"
    in_file(path).put(PAIRS, ["a", "b"], [[1, 2], [3, 4]])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"UPDATE vectors SET vector = {vector} WHERE hash = ?", text_keys(["a"], "document"))
    connection.close()
    cache = in_file(path)
    assert lists(cache.get(PAIRS, ["a", "b"])) == [None, [3, 4]]
    cache.put(PAIRS, ["a"], [[5, 6]])
    assert lists(cache.get(PAIRS, ["a", "b"])) == [[5, 6], [3, 4]]


def test_the_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE vectors (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CacheError, match="is not a vector cache, but another SQLite database"):
        in_file(path).put(PAIRS, ["a"], [[1, 2]])
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_an_error(tmp_path):
    path = tmp_path / "vectors.db"
    in_file(path).put(PAIRS, ["a"], [[1, 2]])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(CacheError, match="has format 99, expected 1; upgrade oprag"):
        in_file(path).get(PAIRS, ["a"])


def test_a_name_that_no_file_can_have_is_an_error():
    with pytest.raises(CacheError, match=r"the name of a vector cache cannot contain a null character: 'a\\x00b'"):
        in_file(Path("a\0b")).get(PAIRS, ["a"])


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(CacheError, match=r"cannot write the vector cache .*: .* is a folder"):
        in_file(tmp_path).put(PAIRS, ["a"], [[1, 2]])
    with pytest.raises(CacheError, match=r"cannot write the vector cache .*: unable to open .*; its folder does not"):
        in_file(tmp_path / "missing" / "vectors.db").put(PAIRS, ["a"], [[1, 2]])


def test_a_read_only_folder_is_an_error(tmp_path):
    tmp_path.chmod(0o555)
    # For root no folder is read-only but those of the kernel.
    folder = Path("/proc") if os.geteuid() == 0 else tmp_path
    for cache in (in_file(folder / "vectors.db"), VectorCache(folder / "vectors.db", namespace="pairs", max_bytes=1)):
        with pytest.raises(CacheError, match="cannot write the vector cache"):
            cache.put(PAIRS, ["a"], [[1, 2]])


WRITER = """
import sys
import numpy as np
from oprag import VectorCache
from tests.helpers import WordEmbedder

path, start, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cache = VectorCache(path, namespace="pairs")
embedder = WordEmbedder(64)
for number in range(start, start + rounds):
    texts = [f"{number}-{place}" for place in range(20)]
    cache.put(embedder, texts, np.full((20, 64), number + 1, dtype=np.float32))
    print(number, flush=True)
"""


def writer(path: Path, start: int, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(start), str(rounds)], stdout=subprocess.PIPE, text=True
    )


def test_processes_may_share_a_file(tmp_path):
    path = tmp_path / "vectors.db"
    processes = [writer(path, 100 * number, 40) for number in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    for process in processes:
        assert process.stdout is not None
        process.stdout.close()
    cache = in_file(path)
    assert len(cache) == 4 * 40 * 20
    assert all(
        vector is not None and (vector == 340).all() for vector in cache.get(WordEmbedder(64), ["339-0", "339-19"])
    )


def test_a_kill_loses_nothing_that_was_finished(tmp_path):
    path = tmp_path / "vectors.db"
    finished: set[int] = set()
    for start in (0, 10_000, 20_000):
        process = writer(path, start, 10_000)
        assert process.stdout is not None
        seen: list[str] = []
        reading = threading.Thread(target=lambda out, into: into.extend(out), args=(process.stdout, seen))
        reading.start()
        while len(seen) < 5:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        reading.join()
        process.stdout.close()
        finished |= {int(line) for line in seen if line.endswith("\n")}
    cache = in_file(path)
    # Whole batches alone: what was finished, and at most one batch of each process that had no time to say so.
    assert len(cache) % 20 == 0
    assert len(finished) <= len(cache) // 20 <= len(finished) + 3
    for number in finished:
        found = cache.get(WordEmbedder(64), [f"{number}-{place}" for place in range(20)])
        assert all(vector is not None and (vector == number + 1).all() for vector in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_opens_the_file_anew(tmp_path):
    code = """
import os, sys
from oprag import VectorCache
from tests.helpers import WordEmbedder
cache, PAIRS = VectorCache(sys.argv[1], namespace="pairs"), WordEmbedder(2)
cache.put(PAIRS, ["parent"], [[1, 2]])
child = os.fork()
if not child:
    cache.put(PAIRS, ["child"], [[3, 4]])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
cache.put(PAIRS, ["again"], [[5, 6]])
print(len(cache), [vector.tolist() for vector in cache.get(PAIRS, ["parent", "child", "again"])])
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "vectors.db")], capture_output=True, text=True, check=True
    )
    assert result.stdout == "3 [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]\n"
