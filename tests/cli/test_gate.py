"""`oprag compare` as a gate: a minimum score, earlier results, and the profile of the setting to deploy."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.methods.profile import read_profile
from tests.compare.folders import in_python, model, write_data, write_experiment

GRID = 'method = "stuff"\nk = [2, 4]\norder = ["source", "rank"]'


def compare(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture
def path(tmp_path):
    return in_python(write_experiment(tmp_path, GRID, model()))


def test_a_minimum_that_is_not_reached_is_exit_code_1(path):
    result = compare(path, "--fail-under", "token_f1=0.99")
    assert result.exit_code == 1, result.output
    assert "minimum 0.99: not reached" in result.stderr
    result = compare(path, "--fail-under", "token_f1=0", "--fail-under", "rouge_l = 0.0")
    assert result.exit_code == 0, result.output
    assert "token_f1 of k=" in result.stderr
    assert "minimum 0\n" in result.stderr


@pytest.mark.parametrize(
    "given", ["token_f1", "token_f1=", "=0.5", "token_f1=nan", "token_f1=high", "inverted_pairs=0.1"]
)
def test_a_minimum_that_cannot_be_read_is_refused_before_anything_runs(path, tmp_path, given):
    result = compare(path, "--fail-under", given)
    assert result.exit_code == 2
    assert not (tmp_path / "harbour.db").exists()


def answered_by(folder, function):
    """An experiment with twenty questions: with four, nothing is significant."""
    path = write_experiment(folder, GRID, f'[models.quick]\nuse = "tests.compare.answering:{function}"')
    write_data(folder / "data", documents=5)
    return in_python(path)


def test_what_became_worse_is_exit_code_1(tmp_path):
    folder = tmp_path / "before"
    good = answered_by(folder, "good")
    assert compare(good).exit_code == 0
    old = tmp_path / "old.db"
    shutil.copy(folder / "harbour.db", old)
    # The same is not worse.
    result = compare(good, "--against", old)
    assert result.exit_code == 0, result.output
    assert "not significantly worse" in result.stderr
    bad = answered_by(tmp_path / "now", "bad")
    result = compare(bad, "--against", old, "--metric", "token_f1")
    assert result.exit_code == 1, result.output
    assert f"since {old}, n = 20: worse" in " ".join(result.stderr.split())
    result = compare(bad, "--against", tmp_path / "none.db")
    assert result.exit_code == 2
    assert "file not found" in result.stderr


def test_the_profile_of_the_setting_to_deploy_is_written(path, tmp_path):
    profile = tmp_path / "oprag.toml"
    result = compare(path, "--write-profile", profile)
    assert result.exit_code == 0, result.output
    read = read_profile(profile)
    assert read.context["k"] in (2, 4)
    assert read.about["experiment"] == "harbour"
    assert f"Profile: {profile}" in result.stderr
    # What a run cannot reach is not written.
    limited = compare(
        path, "--write-profile", tmp_path / "other.toml", "--results", tmp_path / "s.db", "--limit-calls", "1", "--yes"
    )
    assert limited.exit_code == 1
    assert not (tmp_path / "other.toml").exists()


def test_an_experiment_of_a_python_file_is_run_with_limits_of_the_command_line(path, tmp_path):
    result = compare(path, "--limit-calls", "3", "--json", "--yes")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["plan"]["limits"]["calls"] == 3
    assert (tmp_path / "harbour.db").exists()
