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
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from oprag import CacheError, OptionError, VectorCache
from oprag.embedding.cache import text_keys
from oprag.embedding.cache_file import _CACHE, CacheFile


def vectors(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    matrix: np.ndarray = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return matrix


@pytest.fixture(params=["memory", "file"])
def cache(request, tmp_path) -> VectorCache:
    return VectorCache(tmp_path / "vectors.db" if request.param == "file" else None)


def lists(found) -> list[list[float] | None]:
    return [None if vector is None else vector.tolist() for vector in found]


def test_vectors_come_back_to_the_last_bit(cache):
    texts = [f"text {number}" for number in range(1_200)]
    given = vectors(1_200)
    cache.put("model", texts, given)
    found = cache.get("model", [*texts, "another"])
    assert lists(found[:-1]) == given.tolist()
    assert found[-1] is None
    assert all(vector.dtype == np.float32 for vector in found[:-1])
    assert len(cache) == 1_200


def test_what_is_not_there_is_none(cache):
    assert cache.get("model", ["a", "b"]) == [None, None]
    assert cache.get("model", []) == []
    cache.put("model", [], [])
    assert len(cache) == 0


def test_embedders_and_kinds_are_kept_apart(cache):
    cache.put("one", ["text"], [[1, 0]])
    cache.put("two", ["text"], [[0, 1, 0]])
    cache.put("one", ["text"], [[0, 1]], "question")
    assert lists(cache.get("one", ["text"])) == [[1, 0]]
    assert lists(cache.get("one", ["text"], "question")) == [[0, 1]]
    assert lists(cache.get("two", ["text"])) == [[0, 1, 0]]
    assert cache.get("two", ["text"], "question") == [None]
    assert cache.get("three", ["text"]) == [None]


def test_the_last_vector_of_a_text_counts(cache):
    cache.put("model", ["text", "other"], [[1, 0], [1, 1]])
    cache.put("model", ["text"], [[0, 1]])
    assert lists(cache.get("model", ["text", "other"])) == [[0, 1], [1, 1]]
    assert len(cache) == 2


@pytest.mark.parametrize("text", ["", "\0", "\ud83d", "naïve 🙂", "x" * 1_000_000], ids=range(5))
def test_any_text_has_a_place(cache, text):
    cache.put("model", [text], [[1, 2]])
    assert lists(cache.get("model", [text, text + "."])) == [[1, 2], None]


def test_vectors_cannot_be_changed_from_outside(cache):
    given = np.array([[1.0, 2.0]], dtype=np.float32)
    cache.put("model", ["text"], given)
    given[0, 0] = 9
    (found,) = cache.get("model", ["text"])
    assert lists([found]) == [[1, 2]]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 9


@pytest.mark.parametrize("given", [[[1, 2]], [[1, 2]] * 3, [[], []], [[[1, 2]], [[1, 2]]]], ids=range(4))
def test_another_number_of_vectors_is_refused(cache, given):
    with pytest.raises(CacheError, match=r"expected 2 vectors from the caller, got an array of .*; no vector was"):
        cache.put("model", ["a", "b"], given)
    assert len(cache) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e39, None], ids=str)
def test_vectors_that_are_not_finite_are_refused(cache, bad):
    with pytest.raises(
        CacheError, match=r"the vector of text 1 has values that are not finite .*; no vector was stored"
    ):
        cache.put("model", ["a", "b"], [[1, 2], [1, bad]])
    assert len(cache) == 0


@pytest.mark.parametrize("bad", [0.0, -0.0, 1e-60])
def test_vectors_of_zeros_are_refused(cache, bad):
    with pytest.raises(CacheError, match=r"the vector of text 0 is all zeros, so it has no cosine similarity; no"):
        cache.put("model", ["a", "b"], [[bad, bad], [1, 2]])
    assert len(cache) == 0


@pytest.mark.parametrize("given", [[["a", "b"]], [[1, 2], [3]], [[object()]]], ids=["texts", "ragged", "objects"])
def test_vectors_that_are_not_numbers_are_refused(cache, given):
    with pytest.raises(CacheError, match=r"got something that is not a matrix of numbers: .*; no vector was stored"):
        cache.put("model", ["a"] * len(given), given)
    assert len(cache) == 0


def test_threads_may_share_it(cache):
    def work(number: int) -> list[list[float] | None]:
        texts = [f"{number % 4}-{place}" for place in range(50)]
        given = vectors(50, seed=number % 4)
        cache.put("model", texts, given)
        return lists(cache.get("model", texts))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(32)))
    assert all(result == vectors(50, seed=number % 4).tolist() for number, result in enumerate(results))
    assert len(cache) == 200


def test_a_copy_of_what_holds_it_shares_it(cache):
    assert copy.deepcopy({"cache": cache})["cache"] is cache


def test_texts_are_forgotten_whoever_embedded_them_and_as_what(cache):
    texts = [f"text {number}" for number in range(700)]
    cache.put("one", texts, vectors(700))
    cache.put("two", ["text 1", "kept"], [[1, 2], [3, 4]])
    cache.put("one", ["text 1", "kept"], vectors(2), "question")
    assert cache.delete(iter(texts)) == 702
    assert cache.delete([*texts, "never seen"]) == 0
    assert cache.get("one", texts) == [None] * 700
    assert cache.get("one", ["text 1"], "question") == [None]
    assert lists(cache.get("two", ["text 1", "kept"])) == [None, [3, 4]]
    assert len(cache) == 2
    # What was forgotten has room again, and another dimension is still another model.
    cache.put("one", ["text 1"], vectors(1))
    assert len(cache) == 3


def test_everything_is_forgotten(cache):
    assert cache.clear() == 0
    cache.put("one", ["a", "b"], [[1, 2], [3, 4]])
    assert cache.clear() == 2
    assert len(cache) == 0
    # Dimensions, too.
    cache.put("one", ["a"], [[1, 2, 3]])
    assert lists(cache.get("one", ["a", "b"])) == [[1, 2, 3], None]


def test_one_text_in_place_of_several_is_refused(cache):
    cache.put("one", ["a", "b"], [[1, 2], [3, 4]])
    with pytest.raises(OptionError, match=r"texts must be a list of strings, got a string; pass \[text\]"):
        cache.delete("ab")
    with pytest.raises(OptionError, match="texts must be strings, got 1"):
        cache.delete(["ab", 1])
    assert len(cache) == 2


# In memory.


def test_what_is_forgotten_makes_room():
    cache = VectorCache(max_bytes=2 * 320)
    cache.put("model", ["a", "b"], [[1, 2], [3, 4]])
    assert cache.delete(["a"]) == 1
    cache.put("model", ["c"], [[5, 6]])
    assert lists(cache.get("model", ["b", "c"])) == [[3, 4], [5, 6]]


def test_the_longest_unused_go_first():
    cache = VectorCache(max_bytes=3 * 320)
    for name in "abc":
        cache.put("model", [name], [[1, 2]])
    cache.get("model", ["a"])
    cache.put("model", ["d"], [[3, 4]])
    assert [vector is not None for vector in cache.get("model", list("abcd"))] == [True, False, True, True]
    # One that is larger than the bound is there until the next one comes.
    cache.put("model", ["large"], [[1.0] * 1000])
    assert [vector is not None for vector in cache.get("model", ["large", "a"])] == [True, False]


def test_what_is_replaced_is_not_counted_twice():
    cache = VectorCache(max_bytes=2 * 320)
    for _ in range(5):
        cache.put("model", ["a", "b"], [[1, 2], [3, 4]])
    assert len(cache) == 2


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "1"])
def test_a_bound_that_is_none_is_refused(value):
    with pytest.raises(OptionError, match="max_bytes must be an integer >= 1"):
        VectorCache(max_bytes=value)


def test_in_another_process_it_starts_empty():
    cache = VectorCache(max_bytes=100)
    cache.put("model", ["a"], [[1, 2]])
    again = pickle.loads(pickle.dumps(cache))
    assert len(again) == 0
    assert again.path is None


# In a file.


def test_a_file_outlives_its_cache(tmp_path):
    path = tmp_path / "vectors.db"
    VectorCache(path).put("model", ["a"], [[1, 2]])
    again = VectorCache(str(path))
    assert lists(again.get("model", ["a"])) == [[1, 2]]
    assert again.path == path
    assert lists(pickle.loads(pickle.dumps(again)).get("model", ["a"])) == [[1, 2]]


def test_nothing_is_written_before_something_is_kept_or_asked_for(tmp_path):
    VectorCache(tmp_path / "vectors.db")
    assert list(tmp_path.iterdir()) == []


def test_no_text_is_in_the_file(tmp_path):
    path = tmp_path / "vectors.db"
    VectorCache(path).put("model", ["a secret sentence"], [[1, 2]])
    for part in tmp_path.iterdir():
        assert b"secret" not in part.read_bytes()


def test_a_question_alone_makes_no_file(tmp_path):
    cache = VectorCache(tmp_path / "vectors.db")
    assert cache.get("model", ["a"]) == [None]
    assert len(cache) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_deleted_is_made_anew(tmp_path):
    path = tmp_path / "vectors.db"
    cache = VectorCache(path)
    cache.put("model", ["a"], [[1, 2]])
    for part in tmp_path.iterdir():
        part.unlink()
    assert cache.get("model", ["a"]) == [None]
    cache.put("model", ["b"], [[3, 4]])
    assert lists(VectorCache(path).get("model", ["a", "b"])) == [None, [3, 4]]


def test_a_damaged_file_can_be_deleted_while_it_is_in_use(tmp_path):
    path = tmp_path / "vectors.db"
    path.write_bytes(b"no database at all, but long enough to look like a file" * 50)
    cache = VectorCache(path)
    with pytest.raises(CacheError, match="delete it; it is rebuilt"):
        cache.get("model", ["a"])
    path.unlink()
    cache.put("model", ["a"], [[1, 2]])
    assert lists(cache.get("model", ["a"])) == [[1, 2]]


def test_a_file_that_cannot_be_written_can_be_read(tmp_path):
    path = tmp_path / "vectors.db"
    VectorCache(path).put("model", ["a"], [[1, 2]])
    gc.collect()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        cache = VectorCache(path)
        assert lists(cache.get("model", ["a", "b"])) == [[1, 2], None]
        # The last resort, taken by root here too.
        file = CacheFile(path)
        connection = file._database._connected(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (1,)
    finally:
        tmp_path.chmod(0o755)


def test_forgetting_makes_no_file(tmp_path):
    cache = VectorCache(tmp_path / "vectors.db")
    assert (cache.delete(["a"]), cache.clear()) == (0, 0)
    assert list(tmp_path.iterdir()) == []


def test_what_another_process_still_reads_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("oprag.embedding.cache_file._CACHE", _CACHE._replace(patience=0))
    path = tmp_path / "vectors.db"
    cache = VectorCache(path)
    cache.put("model", ["a"], [[1, 2]])
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM vectors").fetchall()
        with pytest.raises(CacheError, match="are still on disk, because another process is reading the file"):
            cache.delete(["a"])
    assert len(cache) == 0
    assert cache.delete(["a"]) == 0


def test_another_dimension_of_the_same_embedder_is_an_error(tmp_path):
    cache = VectorCache(tmp_path / "vectors.db")
    cache.put("model", ["a"], [[1, 2]])
    with pytest.raises(CacheError, match=r"vectors of dimension 2 for the embedder 'model', got dimension 3") as caught:
        cache.put("model", ["b", "c"], [[1, 2, 3], [4, 5, 6]])
    assert caught.value.value == cache.path
    assert isinstance(caught.value, OSError)
    assert len(cache) == 1
    cache.put("model", ["b"], [[3, 4]])
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
    cache = VectorCache(path)
    ways = {
        "get": lambda: cache.get("model", ["a"]),
        "put": lambda: cache.put("model", ["a"], [[1, 2]]),
        "len": lambda: len(cache),
    }
    with pytest.raises(CacheError, match=message) as caught:
        ways[way]()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_damaged_page_is_an_error(tmp_path):
    path = tmp_path / "vectors.db"
    cache = VectorCache(path)
    cache.put("model", [str(number) for number in range(500)], vectors(500))
    del cache
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    data[8_192:] = b"\xee" * (len(data) - 8_192)
    path.write_bytes(data)
    with pytest.raises(CacheError, match=r"is corrupt .*; delete it; it is rebuilt"):
        VectorCache(path).get("model", [str(number) for number in range(500)])


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
    VectorCache(path).put("model", ["a", "b"], [[1, 2], [3, 4]])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"UPDATE vectors SET vector = {vector} WHERE hash = ?", text_keys(["a"], "document"))
    connection.close()
    cache = VectorCache(path)
    assert lists(cache.get("model", ["a", "b"])) == [None, [3, 4]]
    cache.put("model", ["a"], [[5, 6]])
    assert lists(cache.get("model", ["a", "b"])) == [[5, 6], [3, 4]]


def test_the_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE vectors (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CacheError, match="is not a vector cache, but another SQLite database"):
        VectorCache(path).put("model", ["a"], [[1, 2]])
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_an_error(tmp_path):
    path = tmp_path / "vectors.db"
    VectorCache(path).put("model", ["a"], [[1, 2]])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(CacheError, match="has format 99, expected 1; upgrade oprag"):
        VectorCache(path).get("model", ["a"])


def test_a_name_that_no_file_can_have_is_an_error():
    with pytest.raises(CacheError, match=r"the name of a vector cache cannot contain a null character: 'a\\x00b'"):
        VectorCache("a\0b").get("model", ["a"])


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(CacheError, match=r"cannot write the vector cache .*: .* is a folder"):
        VectorCache(tmp_path).put("model", ["a"], [[1, 2]])
    with pytest.raises(CacheError, match=r"cannot write the vector cache .*: unable to open .*; its folder does not"):
        VectorCache(tmp_path / "missing" / "vectors.db").put("model", ["a"], [[1, 2]])


def test_a_read_only_folder_is_an_error(tmp_path):
    tmp_path.chmod(0o555)
    # For root no folder is read-only but those of the kernel.
    folder = Path("/proc") if os.geteuid() == 0 else tmp_path
    for cache in (VectorCache(folder / "vectors.db"), VectorCache(folder / "vectors.db", max_bytes=1)):
        with pytest.raises(CacheError, match="cannot write the vector cache"):
            cache.put("model", ["a"], [[1, 2]])


WRITER = """
import sys
import numpy as np
from oprag import VectorCache

path, start, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cache = VectorCache(path)
for number in range(start, start + rounds):
    texts = [f"{number}-{place}" for place in range(20)]
    cache.put("model", texts, np.full((20, 64), number + 1, dtype=np.float32))
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
    cache = VectorCache(path)
    assert len(cache) == 4 * 40 * 20
    assert all(vector is not None and (vector == 340).all() for vector in cache.get("model", ["339-0", "339-19"]))


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
    cache = VectorCache(path)
    # Whole batches alone: what was finished, and at most one batch of each process that had no time to say so.
    assert len(cache) % 20 == 0
    assert len(finished) <= len(cache) // 20 <= len(finished) + 3
    for number in finished:
        found = cache.get("model", [f"{number}-{place}" for place in range(20)])
        assert all(vector is not None and (vector == number + 1).all() for vector in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_opens_the_file_anew(tmp_path):
    code = """
import os, sys
from oprag import VectorCache
cache = VectorCache(sys.argv[1])
cache.put("model", ["parent"], [[1, 2]])
child = os.fork()
if not child:
    cache.put("model", ["child"], [[3, 4]])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
cache.put("model", ["again"], [[5, 6]])
print(len(cache), [vector.tolist() for vector in cache.get("model", ["parent", "child", "again"])])
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "vectors.db")], capture_output=True, text=True, check=True
    )
    assert result.stdout == "3 [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]\n"
