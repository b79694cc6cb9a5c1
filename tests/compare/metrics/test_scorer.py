import pytest

from oprag.compare.data.data_set import Question
from oprag.compare.metrics.registry import METRICS, ScoredAnswer
from oprag.compare.metrics.scorer import Scorer

QUESTION = Question(id="one", text="Who keeps the moon?", documents=("text",), answers=("Selene", "the goddess"))


class Embedder:
    """Embeds each text as its length, and says what it was asked."""

    name = "lengths"

    def __init__(self):
        self.asked = []

    def embed_documents(self, texts):
        self.asked.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    def embed_questions(self, texts):
        raise AssertionError(texts)


def scorer(*names, embedder=None):
    return Scorer([METRICS[name] for name in names], embedder)


def answer(text, method="stuff", question=QUESTION, **more):
    return ScoredAnswer(question=question, method=method, text=text, **more)


def test_a_likelihood_that_is_no_number_is_no_score():
    (found,) = scorer("answer_likelihood").scores([answer("nan", "answer_likelihood")])
    assert found == ({}, ["no answer_likelihood: it returned nan; a metric must return a finite number or None"])


def test_what_a_metric_cannot_read_is_a_note():
    foreign = Question(id="one", text="?", documents=("text",), answers=("月の女神",))
    scores, (note,) = scorer("rouge_l", "token_f1").scores([answer("Selene", question=foreign)])[0]
    assert scores == {"token_f1": 0.0}
    assert note.startswith("no rouge_l: the ROUGE-L tokenizer only recognizes a to z")


def test_all_texts_of_cosines_are_embedded_in_one_call():
    embedder = Embedder()
    bare = Question(id="bare", text="?", documents=("text",))
    answers = [answer("Selene"), answer(" "), answer("Luna"), answer("x", "context_only"), answer("y", question=bare)]
    found = [scores for scores, _ in scorer("answer_cosine", embedder=embedder).scores(answers)]
    assert embedder.asked == [["Selene", "the goddess", "Luna"]]
    cosines = [one.get("answer_cosine") for one in found]
    assert cosines == [pytest.approx(1), 0, pytest.approx(0.98, abs=0.02), None, None]


def test_no_embedder_is_asked_for_nothing():
    embedder = Embedder()
    assert scorer("answer_cosine", embedder=embedder).scores([answer("")]) == [({"answer_cosine": 0.0}, [])]
    assert scorer("token_f1", embedder=embedder).scores([answer("Selene")]) == [({"token_f1": 1.0}, [])]
    assert not embedder.asked


def test_the_names_by_which_answers_are_kept():
    # They are in the address of every cell: another one asks all its models again.
    assert [metric.identity for metric in METRICS.values()] == [
        "token_f1",
        "exact_match",
        "choice_accuracy 88b3daa6",
        "rouge_l",
        "answer_cosine",
        "answer_likelihood",
        "evidence_coverage",
        "recall",
        "mrr",
        "ndcg",
        "inverted_pairs",
        "paper_token_usage",
        "long_context_share",
    ]
