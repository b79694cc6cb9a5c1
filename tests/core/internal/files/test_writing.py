import os
import sys
import threading

import pytest

from oprag._internal.files.writing import FileKind, check_target, replacing
from oprag.errors import OptionError

ANY = FileKind("a file", lambda path: True)


def test_a_target_that_cannot_or_must_not_be_written_is_refused(tmp_path):
    with pytest.raises(OptionError, match="does not exist; create it first"):
        check_target(tmp_path / "none" / "t.csv", kind=ANY)
    with pytest.raises(OptionError, match="it is a folder"):
        check_target(tmp_path, kind=ANY)
    (tmp_path / "link").symlink_to(tmp_path / "r.db")
    with pytest.raises(OptionError, match="overwritten"):
        check_target(tmp_path / "link", tmp_path / "x.toml", tmp_path / "r.db", kind=ANY)
    assert check_target(tmp_path / "t.csv", tmp_path / "r.db", kind=ANY) == tmp_path / "t.csv"
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert check_target(tmp_path / "circle", kind=ANY) == tmp_path / "circle"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is locked for root")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    (tmp_path / "link").symlink_to(locked / "t.csv")
    for path in (locked / "t.csv", tmp_path / "link"):
        with pytest.raises(OptionError, match="is not writable"):
            check_target(path, kind=ANY)


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with replacing(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_nowhere_to_write_is_an_error(tmp_path):
    with pytest.raises(OptionError, match="No such file"), replacing(tmp_path / "missing" / "file"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is being read cannot be replaced there")
def test_of_many_writers_one_wins_whole(tmp_path):
    path = tmp_path / "file"
    start = threading.Barrier(8)

    def write(letter):
        start.wait()
        for _ in range(20):
            with replacing(path) as file:
                for _ in range(50):
                    file.write(letter * 100)
            assert len(set(path.read_bytes())) == 1

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(path.read_bytes()) == 5000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are others there")
def test_a_link_is_replaced_and_permissions_stay(tmp_path):
    target, link = tmp_path / "file", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    for path in (link, target):
        with replacing(path) as file:
            file.write(b"new" + path.name.encode())
        assert path.stat().st_mode & 0o777 == 0o640
    assert not link.is_symlink()
    assert (link.read_bytes(), target.read_bytes()) == (b"newlink", b"newfile")


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are others there")
def test_what_is_no_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as file:
        file.write(b"new")
    reader.join(10)
    assert read == [b"new"]
    assert pipe.is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_a_new_file_has_the_usual_permissions_and_a_private_one_is_private_while_it_is_written(tmp_path):
    old = os.umask(0o027)
    try:
        with replacing(tmp_path / "new") as file:
            file.write(b"")
    finally:
        os.umask(old)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    (tmp_path / "new").chmod(0o600)
    with replacing(tmp_path / "new"):
        (unfinished,) = set(tmp_path.iterdir()) - {tmp_path / "new"}
        assert unfinished.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
