import json
from dataclasses import replace

import pytest

from oprag.compare.data.data_set import DataSet, Evidence, Question
from oprag.compare.metrics.registry import DEFAULT_METRICS, METRICS, ScoredAnswer, score_all
from oprag.compare.running.run import run
from tests.compare.helpers import METHODS, RecordingModel, experiment, rows

TEXT = "The keeper of the moon is Selene. Other words stand here for a while, and then some more of them. " * 3
FULL = Question(
    id="full",
    text="Who is the keeper of the moon?",
    documents=("text",),
    answers=("Selene", "the goddess Selene"),
    choices=("Apollo", "Selene"),
    right_choice=1,
    evidence=(Evidence("text", 0, 33),),
)
BARE = Question(id="bare", text="Who else?", documents=("text",))
DATA = DataSet(name="set", documents={"text": TEXT}, questions=[BARE, FULL])
GRID = {"k": 4, "splitter": "words", "chunk_size": 12}
OF_ANSWERS = {"token_f1", "exact_match", "rouge_l", "answer_cosine"}
ON_REQUEST = {"paper_token_usage", "long_context_share"}
OF_CONTEXTS = {"inverted_pairs"}


def scores(tmp_path, method, reply="B", data=DATA, **grid):
    path = tmp_path / "results.db"
    model = RecordingModel(lambda text: reply)
    metrics = [*DEFAULT_METRICS, *ON_REQUEST]
    report = run(experiment(model, data=data, grid={**GRID, "method": method, **grid}, metrics=metrics), path)
    assert report.complete, report
    found = rows(path, "SELECT question_id, scores FROM results WHERE method = ?", method)
    return {name: json.loads(values) for name, values in found}


@pytest.mark.parametrize("method", [*METHODS, "closed_book", "context_only"])
def test_each_metric_is_there_where_it_applies_and_nowhere_else(method, tmp_path):
    found = scores(tmp_path, method)
    read = set() if method == "closed_book" else OF_CONTEXTS
    answered = set() if method == "context_only" else ON_REQUEST
    assert set(found["bare"]) == read | answered
    of_answer = set() if method == "context_only" else OF_ANSWERS | {"choice_accuracy"}
    of_evidence = set() if method == "closed_book" else {"evidence_coverage"}
    assert set(found["full"]) == read | answered | of_answer | of_evidence


def test_retrieval_is_scored_by_rank_whatever_the_order_and_what_is_filled_in(tmp_path):
    path = tmp_path / "results.db"
    pages = ["moon keeper moon keeper rain snow hail fog", "moon tide wave sea sun star sky dawn"]
    start = len(pages[0]) + len("\n\n")
    question = Question(
        id="one", text="moon keeper", documents=("text",), evidence=(Evidence("text", start, start + 25),)
    )
    data = DataSet(name="set", documents={"text": pages}, questions=[question])
    metrics = ["recall", "mrr", "ndcg"]
    grid = {"k": [1, 2], "order": ["source", "reverse_rank"], "neighbors": [0, 1], "method": "context_only"}
    small = {"splitter": "words", "chunk_size": 4, "chunk_overlap": 0, "search": "bm25"}
    assert run(experiment(None, data=data, grid=grid | small, metrics=metrics), path).complete
    found = rows(path, "SELECT k, scores FROM results")
    assert len(found) == 8
    # The first of the two chunks of the evidence has rank 2.
    for k, scores in found:
        expected = [0.0, 0.0, 0.0] if k == 1 else [0.5, 0.5, pytest.approx(0.387, abs=0.001)]
        assert [json.loads(scores)[name] for name in metrics] == expected


@pytest.mark.parametrize("method", METHODS)
def test_nothing_left_by_thresholds_is_answered_without_a_call(method, tmp_path):
    path = tmp_path / "results.db"
    model = RecordingModel()
    grid = {**GRID, "method": method, "similarity_threshold": 0.999, "empty_answer": "Nothing there."}
    report = run(experiment(model, data=replace(DATA, questions=[FULL]), grid=grid), path)
    assert report.complete
    assert not model.calls
    ((answer, calls, tokens, chunks, found),) = rows(
        path, "SELECT answer, calls, context_tokens, context_chunks, scores FROM results"
    )
    assert (answer, calls, tokens, chunks) == ("Nothing there.", 0, 0, 0)
    assert json.loads(found)["evidence_coverage"] == 0
    assert json.loads(found)["token_f1"] == 0
    ((dropped,),) = rows(path, "SELECT context ->> 1 FROM answers")
    assert sum(json.loads(dropped).values()) == 4


def test_what_an_answer_took_is_as_if_its_cell_were_alone(tmp_path):
    path = tmp_path / "results.db"
    model = RecordingModel()
    grid = {"k": 4, "chunk_size": 32, "method": ["step_down"], "similarity_threshold": ["none", -1], "seed": 0}
    assert run(experiment(model, grid=grid), path).complete
    found = rows(
        path, "SELECT question_id, calls, input_tokens, output_tokens, embedded_tokens FROM results ORDER BY 1"
    )
    # Two cells that find the same contexts, so one of them asked nobody.
    assert len(found) == 12
    assert found[::2] == found[1::2]
    assert all(embedded > 5 for *_, embedded in found)
    assert sum(row[1] for row in found) >= 2 * len(model.calls)


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


def scored(names, *answers, embedder=None):
    return score_all([METRICS[name] for name in names.split()], answers, embedder)


def answer(text, method="stuff", question=QUESTION, **more):
    return ScoredAnswer(question=question, method=method, text=text, **more)


def test_all_texts_of_cosines_are_embedded_in_one_call():
    embedder = Embedder()
    bare = Question(id="bare", text="?", documents=("text",))
    answers = [answer("Selene"), answer(" "), answer("Luna"), answer("x", "context_only"), answer("y", question=bare)]
    found = [scores for scores, _ in scored("answer_cosine", *answers, embedder=embedder)]
    assert embedder.asked == [["Selene", "the goddess", "Luna"]]
    cosines = [one.get("answer_cosine") for one in found]
    assert cosines == [pytest.approx(1), 0, pytest.approx(0.98, abs=0.02), None, None]


def test_the_names_by_which_answers_are_kept():
    # They are in the address of every cell: another one asks all its models again.
    assert [metric.identity for metric in METRICS.values()] == [
        "token_f1",
        "exact_match",
        "choice_accuracy 88b3daa6",
        "rouge_l",
        "answer_cosine",
        "evidence_coverage",
        "recall",
        "mrr",
        "ndcg",
        "inverted_pairs",
        "paper_token_usage",
        "long_context_share",
    ]
