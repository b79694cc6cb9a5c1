"""The texts of documents, which a results file does not have: they come from the experiment's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oprag.compare.data.data_set import DataSet
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.resolved import ResolvedExperiment

__all__ = ["NOT_GIVEN", "Texts", "texts_of"]

NOT_GIVEN = (
    "The results file holds no document text, and the data was not given to the report: chunks are shown by their "
    "places. `oprag report --experiment FILE.toml` shows their texts."
)


@dataclass(frozen=True)
class Texts:
    """The texts of documents.

    Attributes:
        data: The data sets by their names; empty without texts.
        questions: The keys of the questions whose documents are the same now as when they were asked.
        lacking: Why texts are not there; empty where all are.
    """

    data: Mapping[str, DataSet] = field(default_factory=dict, repr=False)
    questions: frozenset[str] = frozenset()
    lacking: str = NOT_GIVEN

    def document(self, question: str, data: str, name: str) -> str | Sequence[str] | None:
        """The text of a document of a question, or its pages; None where it is not there.

        Args:
            question: The key of the question.
            data: The name of its data set.
            name: The name of the document.
        """
        there = question in self.questions and data in self.data
        return self.data[data].documents.get(name) if there else None


def texts_of(given: Experiment | Mapping[str, DataSet] | None, asked: Sequence[str]) -> Texts:
    """The texts of the documents that questions of a results file are about.

    A question's key depends on the text of its documents, so a text that has changed since is not taken for the one
    that was read.

    Args:
        given: The experiment, or its data.
        asked: The keys of the questions of the results file.
    """
    if given is None:
        return Texts()
    if isinstance(given, Experiment):
        experiment = given
    else:
        experiment = Experiment(name="texts", data=given, grid={"method": "context_only", "k": 1})
    known = {row.key for row in ResolvedExperiment(experiment).question_records}
    questions = frozenset(known.intersection(asked))
    lacking = ""
    if len(questions) < len(asked):
        lacking = (
            f"Of {len(questions):,} of {len(asked):,} questions the texts are shown. The documents of the others are "
            "not in the data that was given, or have changed since they were asked about."
        )
    return Texts(experiment.data, questions, lacking)
