"""What the pages about comparing show is run as it is: comparing.md, experiment_file.md and results_file.md."""

import importlib
import json
import re
import runpy
import shutil
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.compare import DataSet, ModelSpec, Question, compare
from oprag.compare.db.records import RESULTS
from oprag.compare.experiment import Experiment
from oprag.compare.stores import STORE_NAMES
from tests.compare.folders import write_data
from tests.compare.helpers import RecordingModel, experiment, rows
from tests.reader import ROOT, text_blocks

FIRST_COMPARISON, COMPARING, FILE, RESULTS_FILE = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("tutorials/first_comparison", "how_to/compare", "reference/experiment_file", "reference/results_file")
)
SHOWN_FILES = re.findall(r"```toml\n(.*?)```", FIRST_COMPARISON, re.DOTALL)
EVERYTHING, JUDGES = re.findall(r"```toml\n(.*?)```", FILE, re.DOTALL)
COVERAGE_SHOWN, *_ = text_blocks(ROOT / "docs" / "tutorials" / "first_comparison.md")
(PRINTED,) = text_blocks(ROOT / "docs" / "how_to" / "compare.md")
(RESULTS_SCRIPT,) = re.findall(r"```python\n(.*?)```", COMPARING, re.DOTALL)
(METRICS_SCRIPT,) = re.findall(r"```python\n(.*?)```", FILE, re.DOTALL)
QUERIES = re.findall(r'"(SELECT .*?)"', RESULTS_FILE)
FIRST = ROOT / "examples" / "compare_reference"
EXAMPLE = ROOT / "examples" / "compare_orders.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the first experiment was run, with what it printed."""
    folder = tmp_path_factory.mktemp("first")
    for path in FIRST.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path("make_data.py")
        result = CliRunner().invoke(app, ["compare", "coverage.toml", "--compare-axis", "k"])
        assert result.exit_code == 0, result.output
        Path("coverage.txt").write_text(result.stdout, encoding="utf-8")
    return folder


def same(text):
    """The lines without their figures, which are those of one version of Python's documentation, or of a model."""
    figures = re.compile(r"[+-]?\d[\d,.]*(?: \((?:rank|random)\))?")
    return [re.sub(r"[ ─]+", " ", figures.sub("0", line)).strip() for line in text.splitlines() if line.strip()]


def test_the_first_table_is_that_which_is_shown(folder):
    assert sorted(same((folder / "coverage.txt").read_text(encoding="utf-8"))) == sorted(same(COVERAGE_SHOWN))


def test_the_experiment_files_are_those_that_are_shown():
    files = [(FIRST / f"{name}.toml").read_text(encoding="utf-8") for name in ("coverage", "answers")]
    assert files == SHOWN_FILES


def test_the_results_in_python_are_those_that_are_shown(folder, monkeypatch, capsys):
    pytest.importorskip("pandas")
    monkeypatch.chdir(folder)
    exec(compile(RESULTS_SCRIPT, "comparing.md", "exec"), {})
    assert same(capsys.readouterr().out) == same(PRINTED)
    assert len((folder / "settings.csv").read_text(encoding="utf-8").splitlines()) == 10
    for name in ("answers.csv", "curve.svg"):
        assert (folder / name).stat().st_size > 1_000


def test_the_metrics_of_ones_own_score(tmp_path, monkeypatch):
    (tmp_path / "my_metrics.py").write_text(METRICS_SCRIPT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    functions = vars(importlib.import_module("my_metrics"))
    given = eval(re.findall(r"`metrics=(\[.*right_numbers.*\])`", FILE)[0], dict(functions))
    question = Question(id="one", text="When?", documents=("text",), answers=("in 1969, on the 20th", "never"))
    data = DataSet(name="moon", documents={"text": "It was on the 20th of July 1969."}, questions=[question])
    model = RecordingModel(lambda text: "It was in 1969.")
    compare(experiment(model, data=data, metrics=given), tmp_path / "results.db")
    ((scores,),) = rows(tmp_path / "results.db", "SELECT scores FROM results")
    assert json.loads(scores) == {"token_f1": 0.5, "right_numbers": 0.5, "words": 4.0}


def test_the_judges_grade(tmp_path):
    judge = RecordingModel(lambda text: "GRADE: some" if "say what the answer says" in text else "GRADE: P")
    models = {"m": ModelSpec(RecordingModel(), "m"), "big": ModelSpec(judge, "big")}
    given = experiment(models=models, grid={"k": 2, "chunk_size": 32, "model": "m"}, **tomllib.loads(JUDGES))
    compare(given, tmp_path / "results.db")
    scores = [json.loads(one) for (one,) in rows(tmp_path / "results.db", "SELECT scores FROM results")]
    assert {(one["correct"], one["faithful"]) for one in scores} == {(0.5, 0.5)}


def test_the_queries_run(folder):
    assert len(QUERIES) == 3
    with closing(sqlite3.connect(folder / "coverage.db")) as connection, connection:
        coverage, failures, everything = (connection.execute(query).fetchall() for query in QUERIES)
    assert len(coverage) == 9
    assert all(0 < value < 1 for _, _, value in coverage)
    assert failures == []
    assert len(everything) == 150


def test_the_file_with_every_key_is_read(tmp_path):
    write_data(tmp_path / "stories")
    (tmp_path / "all.toml").write_text(EVERYTHING, encoding="utf-8")
    assert set(tomllib.loads(EVERYTHING)) == set(Experiment.model_fields) - {"stores", "methods"}
    experiment = Experiment.from_file(tmp_path / "all.toml")
    # The control has no order and no context; random has three seeds.
    assert len(experiment.grid_cells.cells) == 2 * (3 * 2 * (2 + 3) + 1)
    line = FILE.partition("besides ")[2].partition("\n")[0]
    assert line.split(", ") == list(STORE_NAMES)


def test_the_experiment_with_a_model_is_read(folder):
    assert len(Experiment.from_file(folder / "answers.toml").grid_cells.cells) == 5


def test_every_table_of_a_results_file_is_named():
    named = set(re.findall(r"`(\w+)`", RESULTS_FILE))
    there = set(re.findall(r"CREATE (?:TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)", RESULTS.schema))
    assert there - {"embedders"} <= named


def test_the_example_is_planned_and_run_without_a_model(tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    shutil.copytree(EXAMPLE.with_suffix(""), tmp_path / EXAMPLE.stem)
    path = str(tmp_path / EXAMPLE.name)
    planned = CliRunner().invoke(app, ["compare", path, "--plan"])
    assert "0 model calls" in planned.stdout.splitlines()
    result = CliRunner().invoke(app, ["compare", path, "--json"])
    assert result.exit_code == 0, result.output
    cells = json.loads(result.stdout)["settings"]
    assert [(cell["values"]["k"], cell["values"]["order"], cell["cells"]) for cell in cells] == [
        (k, order, seeds) for k in (4, 8, 16) for order, seeds in (("source", 1), ("rank", 1), ("random", 3))
    ]
    assert all(cell["failed"] == 0 for cell in cells)
    inverted = {cell["values"]["order"]: cell["scores"]["inverted_pairs"]["mean"] for cell in cells}
    assert inverted["source"] == 0
    assert 0.3 < inverted["rank"] < 0.7
    coverage = [cell["scores"]["evidence_coverage"]["mean"] for cell in cells if cell["values"]["order"] == "source"]
    assert coverage == sorted(coverage)


def test_the_evidence_of_the_example_is_where_it_says():
    data = Experiment.from_file(EXAMPLE).data["stories"]
    assert len(data.questions) == 16
    for question in data.questions:
        for part in question.evidence:
            text = data.documents[part.document]
            assert isinstance(text, str)
            # Whole words.
            assert not text[part.start - 1 : part.start].isalnum()
            assert not text[part.end : part.end + 1].isalnum()
