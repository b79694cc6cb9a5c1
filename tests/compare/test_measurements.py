"""What was measured, by setting and phase."""

from typing import Any

import pytest

from oprag.compare.experiment_file import read_experiment
from oprag.compare.measured import measure_cells
from oprag.compare.measurements import measured_table
from oprag.compare.reading import read_results
from oprag.compare.running import run
from tests.compare.folders import model, write_experiment


def table_of(*given, **options) -> Any:
    return measured_table(*given, **options)


def test_a_run_that_was_not_measured_has_no_rows(tmp_path):
    run(read_experiment(write_experiment(tmp_path, 'method = "context_only"\nk = 2')), tmp_path / "r.db")
    assert table_of(read_results(tmp_path / "r.db"), tmp_path / "r.db") == []


def test_each_phase_of_each_setting(tmp_path):
    pytest.importorskip("psutil")
    path = write_experiment(
        tmp_path, 'method = ["stuff", "closed_book"]\nk = 2', model(seconds=0.02), data="questions = 2"
    )
    measure_cells(read_experiment(path), tmp_path / "r.db", warmup=0, repeats=2)
    stuff, closed = table_of(read_results(tmp_path / "r.db"), tmp_path / "r.db")
    assert stuff.values["method"] == "stuff"
    assert set(stuff.phases) >= {"retrieval", "generation"}
    assert closed.phases["generation"].seconds.n == 2  # questions, of two attempts each
    for row in (stuff, closed):
        taken = row.phases["generation"]
        assert taken.seconds.median >= 0.02
        assert taken.peak_memory_bytes > 1_000_000
        assert 0 <= taken.cpu_percent <= 100
