"""What a results file says is what the run wrote, and no more than the experiment has now."""

import pytest

from oprag.compare.analysis.summary import ANSWERED, NOT_TRIED
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.results import Results
from oprag.compare.running.run import run
from tests.compare.folders import experiment_of, model, write_data, write_experiment


@pytest.fixture
def ran(tmp_path):
    """A folder with an experiment that was run."""
    grid = 'method = ["stuff", "context_only"]\norder = ["source", "rank"]\nk = 2\nstitch = false'
    path = write_experiment(tmp_path, grid, model())
    report = run(experiment_of(path), tmp_path / "r.db")
    assert report.complete
    return tmp_path


def test_cells_stand_in_the_sequence_of_the_grid_as_it_is_now(ran):
    grid = 'method = ["context_only", "stuff"]\norder = ["reverse_rank", "rank", "source"]\nk = 2\nstitch = false'
    run(experiment_of(write_experiment(ran, grid, model())), ran / "r.db")
    cells = Results.open(ran / "r.db").matrix.cells
    assert [(cell.values["method"], cell.values["order"]) for cell in cells] == [
        (method, order) for method in ("context_only", "stuff") for order in ("reverse_rank", "rank", "source")
    ]
    assert all(list(cell.values)[:4] == ["chunk_size", "method", "order", "k"] for cell in cells)


def test_cells_and_questions_that_are_no_longer_asked_are_left_out(ran):
    path = write_experiment(ran, 'method = "stuff"\nk = 2\nstitch = false', model(), data="sample = 2")
    run(experiment_of(path), ran / "r.db")
    assert Results.open(ran / "r.db").matrix.status.tolist() == [[ANSWERED] * 2]


def test_questions_that_were_not_tried_have_no_answer(ran):
    path = write_experiment(ran, 'method = "stuff"\nk = 3', model(), max_concurrency=1)
    spent = ResultsFile(ran / "r.db").spent("harbour").calls
    assert run(experiment_of(path, limits={"calls": spent + 1}), ran / "r.db").remaining == 3
    assert sorted(Results.open(ran / "r.db").matrix.status.ravel().tolist()) == [NOT_TRIED] * 3 + [ANSWERED]


@pytest.mark.parametrize(("documents", "clusters"), [(1, 4), (9, 36), (10, 10)])
def test_documents_are_clusters_from_ten_on(tmp_path, documents, clusters):
    path = write_experiment(tmp_path, 'method = "context_only"\nk = 2')
    write_data(tmp_path / "data", documents=documents)
    run(experiment_of(path), tmp_path / "r.db")
    results = Results.open(tmp_path / "r.db").matrix
    assert len(results.clusters) == 4 * documents
    assert len(set(results.clusters.tolist())) == clusters
