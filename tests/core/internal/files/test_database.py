"""Databases of oprag that several connections open at once."""

import sys
import threading

import pytest

from oprag._internal.files.database import Database, Format
from oprag.errors import CacheError

NUMBERS = Format("list of numbers", 0x1234, 1, "CREATE TABLE numbers (number INTEGER);", CacheError, "delete it")


@pytest.fixture
def eager():
    """Threads that take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager")
def test_a_new_file_may_be_made_by_several_at_once(tmp_path):
    failed = []

    def write(path, together, number):
        together.wait()
        try:
            with Database(path, NUMBERS).writing() as connection:
                connection.execute("INSERT INTO numbers VALUES (?)", [number])
        except CacheError as error:
            failed.append(error)

    for file in range(60):
        path, together = tmp_path / f"{file}.db", threading.Barrier(8)
        threads = [threading.Thread(target=write, args=(path, together, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with Database(path, NUMBERS).reading() as connection:
            assert sorted(connection.execute("SELECT number FROM numbers")) == [(number,) for number in range(8)]
    assert failed == []
