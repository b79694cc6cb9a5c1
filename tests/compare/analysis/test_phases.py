"""What was measured, by setting and phase."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from oprag.compare.analysis.summary import SettingSummary, measured_how
from oprag.compare.cores import describe_cores
from oprag.compare.db.records import Measurement, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.measure.measure import measure_cells
from oprag.compare.results import Results
from oprag.compare.running.run import run
from tests.compare.folders import experiment_of, model, write_experiment
from tests.compare.helpers import experiment, keepers


def table_of(path: Path, experiment: str | None = None) -> list[SettingSummary]:
    return [setting for setting in Results.open(path, experiment).settings if setting.phases]


def test_a_run_that_was_not_measured_has_no_rows(tmp_path):
    run(
        experiment_of(write_experiment(tmp_path, 'method = "context_only"\nk = 2')),
        tmp_path / "r.db",
    )
    assert table_of(tmp_path / "r.db") == []


@pytest.mark.process
def test_each_phase_of_each_setting(tmp_path):
    pytest.importorskip("psutil")
    path = write_experiment(
        tmp_path, 'method = ["stuff", "closed_book"]\nk = 2', model(seconds=0.02), data="sample = 2"
    )
    measure_cells(experiment_of(path), tmp_path / "r.db", warmup=0, repeats=2)
    stuff, closed = table_of(tmp_path / "r.db")
    assert stuff.values["method"] == "stuff"
    assert set(stuff.phases) >= {"retrieval", "generation"}
    assert closed.phases["generation"].seconds.n == 2  # questions, of two attempts each
    for row in (stuff, closed):
        taken = row.phases["generation"]
        assert (taken.seconds.median or 0) >= 0.02
        assert taken.peak_memory_bytes > 1_000_000
        assert 0 <= taken.cpu_percent <= 100
        assert row.cores == (describe_cores(),)
    assert f"usable cores, {describe_cores()}. Memory was sampled" in measured_how([stuff, closed])
    # In files of earlier versions, runs do not say it.
    with closing(sqlite3.connect(tmp_path / "r.db")) as file:
        file.execute("UPDATE runs SET versions = '{}'")
        file.commit()
    table = table_of(tmp_path / "r.db")
    assert [row.cores for row in table] == [(), ()]
    assert measured_how(table).startswith("CPU is the utilization of the usable cores. Memory")


def test_experiments_that_share_a_cell_have_their_own_questions(tmp_path):
    data = keepers(documents=1, questions=4)
    path = tmp_path / "r.db"
    wanted = {}
    for name, questions, seconds in (("first", data.questions[:2], 1.0), ("second", data.questions[2:], 9.0)):
        part = replace(data, questions=questions)
        run(experiment(grid={"method": "context_only", "k": 2}, data=part, name=name), path)
        matrix = Results.open(path, name).matrix
        (cell,) = matrix.cells
        file = ResultsFile(path, run=1)
        keys = [question.key for question in matrix.questions]
        taken = [Measurement(cell.key, key, 1, "retrieval", seconds, 50.0, 1_000, 10) for key in keys]
        file.put_measurements(cell.key, taken, Spent())
        file.close()
        wanted[name] = cell.key, seconds
    assert len({key for key, _ in wanted.values()}) == 1
    for name, (_, seconds) in wanted.items():
        (row,) = table_of(path, name)
        summary = row.phases["retrieval"].seconds
        assert (summary.n, summary.mean) == (2, seconds)
        assert row.by_question("seconds").tolist() == [seconds] * 2
