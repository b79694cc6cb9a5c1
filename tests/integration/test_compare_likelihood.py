"""A whole experiment with likelihoods by the packaged model, read by llama.cpp."""

from typing import Any

import pytest

from oprag.compare.data.data_set import DataSet, Question
from oprag.compare.providers.gguf_likelihood import GgufLikelihood
from oprag.compare.providers.likelihood import likelihood_prompt
from oprag.compare.providers.local_model import local_model_file
from oprag.compare.results import Results
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.run import run
from oprag.compare.spec.experiment import Experiment
from tests.compare.helpers import rows

pytestmark = [pytest.mark.integration, pytest.mark.allow_hosts(["127.0.0.1"])]

TEXT = (
    "The lighthouse of Ardmore was built by Hester Quill in a dry summer. Its lamp burns seal oil. "
    "The ferry to Varn leaves at seven in the morning. On Sundays it does not leave at all. "
    "Bread rises for three hours in a cool cellar before it is baked."
)
QUESTIONS = (
    Question(id="lighthouse", text="Who built the lighthouse?", documents=("d",), answers=("Hester Quill", "Quill")),
    Question(id="ferry", text="When does the ferry leave?", documents=("d",), answers=("at seven",)),
    Question(id="bread", text="How long does bread rise?", documents=("d",), answers=("three hours",)),
)


def test_a_context_makes_gold_answers_likelier(tmp_path):
    settings: dict[str, Any] = {"window": 1024, "threads": 1}
    experiment = Experiment(
        name="likelihood",
        data={"notes": DataSet(name="notes", documents={"d": TEXT}, questions=QUESTIONS)},
        grid={"k": 3, "chunk_size": 24, "method": ["answer_likelihood", "closed_book_likelihood"]},
        models={"smollm2": {"use": "gguf:local", **settings}},
        metrics=["answer_likelihood", "evidence_coverage"],
    )
    path = tmp_path / "results.db"
    report = run(experiment, path)
    assert report.complete, report
    assert report.spent.calls == 2 * 4
    with_context, alone = (one.by_question("answer_likelihood") for one in Results.open(path).settings)
    assert (with_context - alone > 0.5).all()
    assert (alone < 0).all()

    # The figures are those of the model itself, and are kept for the next run.
    likely = GgufLikelihood(local_model_file(), **settings)
    (name,) = ResolvedExperiment(experiment).described()["models"].values()
    assert name == likely.name
    first, *_ = alone.tolist()
    own = [likely.answer_likelihood(likelihood_prompt("", QUESTIONS[0].text), gold) for gold in QUESTIONS[0].answers]
    assert first == pytest.approx(max(own), abs=0.05)
    assert run(experiment, path).spent == report.spent
    assert rows(path, "SELECT count(*), min(step), max(step) FROM replies") == [(8, "likelihood", "likelihood")]
