"""Questions about the Python language reference as a data set; each names the topic with its answer."""

from __future__ import annotations

from pydoc_data.topics import topics

from benchmarks.questions import QUESTIONS
from oprag.compare import DataSet, Evidence, Question

__all__ = ["language_reference"]


def language_reference(times: int = 1) -> DataSet:
    """Return the data set.

    Args:
        times: Number of copies of each question, for a larger set; further copies differ only in a number suffix.
    """
    documents = dict(topics)
    questions = [
        Question(
            id=f"{topic}-{again}",
            text=question if again == 1 else f"{question} ({again})",
            documents=tuple(documents),
            answers=(topic,),
            evidence=(Evidence(topic, 0, len(documents[topic])),),
        )
        for again in range(1, times + 1)
        for question, topic in QUESTIONS.items()
    ]
    return DataSet(name="language reference", documents=documents, questions=questions)
