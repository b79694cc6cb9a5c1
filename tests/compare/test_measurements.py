"""What was measured, by setting and phase."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from oprag.compare.db.records import Measurement, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.measure.measure import measure_cells
from oprag.compare.measure.usage import describe_cores
from oprag.compare.measurements import measured_how, measured_table
from oprag.compare.quantities import read_seconds
from oprag.compare.reading import read_results
from oprag.compare.running.run import run
from oprag.compare.spec.experiment import Experiment
from tests.compare.folders import model, write_experiment
from tests.compare.helpers import experiment, keepers


def table_of(*given, **options) -> Any:
    return measured_table(*given, **options)


def test_a_run_that_was_not_measured_has_no_rows(tmp_path):
    run(Experiment.from_file(write_experiment(tmp_path, 'method = "context_only"\nk = 2')), tmp_path / "r.db")
    assert table_of(read_results(tmp_path / "r.db"), tmp_path / "r.db") == []


@pytest.mark.process
def test_each_phase_of_each_setting(tmp_path):
    pytest.importorskip("psutil")
    path = write_experiment(
        tmp_path, 'method = ["stuff", "closed_book"]\nk = 2', model(seconds=0.02), data="questions = 2"
    )
    measure_cells(Experiment.from_file(path, trust=True), tmp_path / "r.db", warmup=0, repeats=2)
    stuff, closed = table_of(read_results(tmp_path / "r.db"), tmp_path / "r.db")
    assert stuff.values["method"] == "stuff"
    assert set(stuff.phases) >= {"retrieval", "generation"}
    assert closed.phases["generation"].seconds.n == 2  # questions, of two attempts each
    for row in (stuff, closed):
        taken = row.phases["generation"]
        assert taken.seconds.median >= 0.02
        assert taken.peak_memory_bytes > 1_000_000
        assert 0 <= taken.cpu_percent <= 100
        assert row.cores == [describe_cores()]
    assert f"usable cores, {describe_cores()}. Memory was sampled" in measured_how([stuff, closed])
    # In files of earlier versions, runs do not say it.
    with closing(sqlite3.connect(tmp_path / "r.db")) as file:
        file.execute("UPDATE runs SET versions = '{}'")
        file.commit()
    table = table_of(read_results(tmp_path / "r.db"), tmp_path / "r.db")
    assert [row.cores for row in table] == [[], []]
    assert measured_how(table).startswith("CPU is the share of the usable cores. Memory")


def test_experiments_that_share_a_cell_have_their_own_questions(tmp_path):
    data = keepers(documents=1, questions=4)
    path = tmp_path / "r.db"
    wanted = {}
    for name, questions, seconds in (("first", data.questions[:2], 1.0), ("second", data.questions[2:], 9.0)):
        part = replace(data, questions=questions)
        run(experiment(grid={"method": "context_only", "k": 2}, data=part, name=name), path)
        results = read_results(path, name)
        (cell,) = results.cells
        file = ResultsFile(path, run=1)
        taken = [Measurement(cell.key, key, 1, "retrieval", seconds, 50.0, 1_000, 10) for key in results.clusters]
        file.put_measurements(cell.key, taken, Spent())
        file.close()
        wanted[name] = cell.key, seconds
    assert len({key for key, _ in wanted.values()}) == 1
    for name, (key, seconds) in wanted.items():
        results = read_results(path, name)
        (row,) = table_of(results, path)
        summary = row.phases["retrieval"].seconds
        assert (summary.n, summary.mean) == (2, seconds)
        assert read_seconds(results, path)[key] == {question: {"retrieval": seconds} for question in results.clusters}
