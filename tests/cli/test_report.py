"""`oprag report`, run as a user runs it."""

import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("jinja2")

from oprag.compare.running.run import run
from tests.cli.commands import check_refusal
from tests.cli.commands import run as run_command
from tests.compare.folders import PYTHON, experiment_of, model, write_experiment
from tests.compare.report.parsed import page_of


@pytest.fixture
def folder(tmp_path):
    """A folder with an experiment that was run."""
    path = write_experiment(tmp_path, 'method = "stuff"\norder = ["source", "rank"]\nk = [1, 3]', model())
    assert run(experiment_of(path), tmp_path / "r.db").complete
    return tmp_path


def report(*arguments):
    return run_command("report", *arguments)


def test_a_report_is_written_where_it_is_asked_for(folder):
    result = report(folder / "r.db", "-o", folder / "out.html")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "out.html, 0." in result.stderr
    assert page_of(folder / "out.html").root.all("h1")[0].text == "Results of harbour"


def test_the_metric_and_the_experiment_are_named(folder):
    text = (folder / "harbour.toml").read_text(encoding="utf-8")
    (folder / "other.toml").write_text(text.replace('"harbour"', '"other"'), encoding="utf-8")
    (folder / "other.py").write_text(PYTHON, encoding="utf-8")
    run(experiment_of(folder / "other.toml"), folder / "r.db")
    check_refusal(report(folder / "r.db"), "several experiments", "harbour, other")
    assert report(folder / "r.db", "--name", "other", "--metric", "rouge_l").exit_code == 0
    page = page_of(folder / "r.html")
    assert page.root.all("h1")[0].text == "Results of other"
    assert "main metric: rouge_l" in page.section("overview").text


def test_what_cannot_be_is_refused_in_one_line(folder):
    check_refusal(report(folder / "none.db"), "no such results file", code=1)
    with closing(sqlite3.connect(folder / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
    check_refusal(report(folder / "other.db"), "another SQLite database", code=1)
    (folder / "text.db").write_text("no database at all, but long enough to look like one" * 40, encoding="utf-8")
    check_refusal(report(folder / "text.db"), "is corrupt", code=1)
    check_refusal(report(folder / "r.db", "-o", folder / "none" / "r.html"), "create it first")
    check_refusal(report(folder / "r.db", "-o", folder / "r.db"), "would be overwritten")
    (folder / "empty.db").touch()
    check_refusal(report(folder / "empty.db"), "is not a results file: it is empty", code=1)
    assert (folder / "empty.db").stat().st_size == 0
    check_refusal(report(folder / "r.db", "--metric", "rouge"), "rouge")
    check_refusal(report(folder / "r.db", "--name", "third"), "no experiment 'third'", "harbour")
    assert not list(folder.glob("*.html"))
