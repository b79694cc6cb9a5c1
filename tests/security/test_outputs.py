"""Files that commands write: an attacker may plant links in a shared folder, and a writer may be killed."""

import contextlib
import os
import subprocess
import sys

import pytest

from oprag.errors import OptionError
from oprag.files.writing import replacing
from oprag.profile import Profile, write_profile
from tests.compare.folders import oprag, write_experiment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and signals of Unix")

_WRITER = """
import pathlib, sys
from oprag.files.writing import replacing
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


@pytest.fixture
def folder(tmp_path):
    """An experiment that was run."""
    path = write_experiment(tmp_path, 'method = "context_only"\nk = [2, 3]')
    assert oprag("compare", path).exit_code == 0
    return tmp_path


def outputs(folder, target):
    """Each command that writes a file, writing to the same one."""
    experiment = folder / "harbour.toml"
    yield oprag("compare", experiment, "--csv", target)
    yield oprag("report", folder / "harbour.db", "-o", target)
    yield oprag("sweep", folder / "data" / "questions.jsonl", "--write-profile", target)


@pytest.mark.parametrize(
    "content",
    [
        b"year,ships\n1850,3\n",
        b"\xff\x00",
        b'"' * 200_000,
        b"format = 1\n[mine]\n",
    ],
)
def test_no_output_takes_the_place_of_another_file(folder, content):
    target = folder / "theirs"
    target.write_bytes(content)
    for result in outputs(folder, target):
        assert result.exit_code == 2
        assert "already exists and is not a" in result.stderr
        assert "Traceback" not in result.output
    assert target.read_bytes() == content


@pytest.mark.parametrize("name", ["harbour.db", "harbour.db-wal", "harbour.db-shm", "other.db-journal"])
def test_no_output_takes_the_place_of_a_part_of_a_database(folder, name):
    (folder / "other.db").touch()
    for result in outputs(folder, folder / name):
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
    assert (folder / name).exists() == (name == "harbour.db")


def test_the_files_that_a_command_reads_stay(folder):
    read = [folder / "harbour.toml", folder / "data" / "questions.jsonl"]
    before = [path.read_bytes() for path in read]
    for path in read:
        assert {result.exit_code for result in outputs(folder, path)} == {2}
    assert [path.read_bytes() for path in read] == before


def test_a_profile_takes_the_place_of_a_profile_alone(tmp_path):
    path = tmp_path / "oprag.toml"
    write_profile(Profile(), path)
    write_profile(Profile(), path)
    path.write_text("[project]\n")
    with pytest.raises(OptionError, match="already exists and is not a profile"):
        write_profile(Profile(), path)
    assert path.read_text() == "[project]\n"


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
    with pytest.raises(PermissionError, match="a link that belongs to another user"), replacing(link):
        pass
    # In a folder of their own a user's links are as good as their files.
    os.chown(folder, 12345, 12345)
    with replacing(link) as file:
        file.write(b"new")
    assert victim.read_bytes() == b"new"
