"""Files that commands write: an attacker may plant links in a shared folder, and a writer may be killed."""

import contextlib
import os
import subprocess
import sys

import pytest

from oprag.whole_file import replacing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and signals of Unix")

_WRITER = """
import pathlib, sys
from oprag.whole_file import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def a_writer(path):
    """A process that has begun to write a file, and goes on when its input ends."""
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        try:
            yield process
        finally:
            process.kill()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_killed_writers_leave_behind_is_removed_by_the_next_one(tmp_path):
    for number in range(3):
        with a_writer(tmp_path / f"killed{number}"):
            pass
    with replacing(tmp_path / "file") as file:
        file.write(b"new")
    assert names(tmp_path) == ["file"]


def test_what_a_living_writer_writes_is_left_alone(tmp_path):
    with a_writer(tmp_path / "theirs") as process:
        with replacing(tmp_path / "ours") as file:
            file.write(b"ours")
        assert len(names(tmp_path)) == 2
        process.communicate()
        assert process.returncode == 0
    assert names(tmp_path) == ["ours", "theirs"]
    assert (tmp_path / "theirs").read_bytes() == b"half"


def test_a_file_that_is_planted_as_a_leftover_costs_nothing_of_others(tmp_path):
    folder, victim = tmp_path / "shared", tmp_path / "victim"
    folder.mkdir()
    victim.write_bytes(b"theirs")
    (folder / ".oprag-unfinished-link").symlink_to(victim)
    (folder / ".oprag-unfinished-folder").mkdir()
    os.link(victim, folder / ".oprag-unfinished-hard")
    os.mkfifo(folder / ".oprag-unfinished-pipe")
    with replacing(folder / "file") as file:
        file.write(b"new")
    assert victim.read_bytes() == b"theirs"
    assert (folder / "file").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of several users")
def test_a_link_that_another_user_planted_is_not_followed(tmp_path):
    folder, victim, link = tmp_path / "shared", tmp_path / "victim", tmp_path / "shared" / "out.csv"
    folder.mkdir(mode=0o1777)
    victim.write_bytes(b"")
    link.symlink_to(victim)
    os.lchown(link, 12345, 12345)
    with pytest.raises(PermissionError, match="a link that another user has put there"), replacing(link):
        pass
    # In a folder of their own a user's links are as good as their files.
    os.chown(folder, 12345, 12345)
    with replacing(link) as file:
        file.write(b"new")
    assert victim.read_bytes() == b"new"
