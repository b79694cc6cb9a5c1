"""Files that commands write: none takes the place of another file."""

import sys

import pytest

from oprag.errors import OptionError
from oprag.methods.profile import Profile, write_profile
from tests.cli.commands import run as oprag
from tests.compare.folders import write_experiment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and signals of Unix")


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
