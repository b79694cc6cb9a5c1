import json
import threading
from collections import Counter
from dataclasses import replace

import pytest

from oprag.compare.data.data_set import DataSet, Question
from oprag.compare.metrics.registry import METRICS
from oprag.compare.plan import make_plan
from oprag.compare.providers.specs import EmbedderSpec
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.run import RunReport, run
from oprag.errors import ExperimentError, OptionError
from tests.compare.alone import answer_alone
from tests.compare.helpers import METHODS, RecordingModel, Words, experiment, keepers, reply_to, rows, text_of
from tests.meeting import Meeting

ANSWERED = [*METHODS, "closed_book", "context_only"]


def empty_store(embeddings):
    from langchain_core.vectorstores import InMemoryVectorStore

    return InMemoryVectorStore(embeddings)


SMALL = {"k": 5, "chunk_size": 32, "method": ANSWERED}
GRIDS = {
    "orders": {**SMALL, "order": ["source", "rank", "edges", "random"], "seed": [0, 1]},
    "thresholds": {
        **SMALL,
        "k": 6,
        "max_candidates": 12,
        "inner_method": ["stuff", "map_rerank"],
        "passage_tokens": 60,
        "similarity_threshold": ["none", 0.5],
        "redundancy_threshold": ["none", 0.9],
    },
    "searches": {
        "k": 5,
        "splitter": ["words", "tokens"],
        "chunk_size": 40,
        "chunk_overlap": [0, 8],
        "neighbors": [0, 1],
        "search": ["dense", "bm25", "hybrid"],
        "method": ["stuff", "map_reduce"],
        "similarity_threshold": 0.4,
    },
    "stores": {**SMALL, "store": ["index", "mine"], "cite": [False, True]},
    "budgets": {
        "token_budget": [100, 400],
        "chunk_size": 32,
        "method": ANSWERED,
        "variants": [1, 2],
        "collapse_tokens": 60,
        "source_token_budget": 500,
        "overflow": ["truncate_middle", "truncate_end"],
        "rank_by": ["confidence", "cosine"],
    },
}


@pytest.mark.parametrize("name", GRIDS)
def test_answers_are_those_of_each_cell_by_itself(name, tmp_path):
    model = RecordingModel()
    small = experiment(
        model,
        grid=GRIDS[name],
        data=keepers(documents=2, questions=2),
        stores={"mine": empty_store},
        metrics=("token_f1", "inverted_pairs"),
    )
    report = run(small, tmp_path / "results.db")
    assert report.complete, text_of(report)
    # Equal work is done once.
    assert len(model.calls) == len(set(model.calls)) == report.spent.calls

    found = {
        (cell, question): values
        for cell, question, *values in rows(
            tmp_path / "results.db",
            "SELECT cell, questions.name, text, notes, route, calls, input_tokens, output_tokens, context_tokens "
            "FROM answers JOIN questions ON questions.key = answers.question",
        )
    }
    prepared = PreparedExperiment(small)
    data = small.data["keepers"]
    tokenizer = EmbedderSpec(Words(), "words").open().tokenizer.tokenizer
    asked = 0
    for item in prepared.items():
        answer = answer_alone(item.cell, item.question, data.documents, Words(), tokenizer, reply_to)
        usage, context = answer.usage, answer.context
        assert found.pop((item.place[0], item.question.id)) == [
            answer.text,
            json.dumps(list(answer.notes), separators=(",", ":")),
            answer.route,
            len(answer.calls),
            usage.input_tokens,
            usage.output_tokens,
            None if context is None else context.tokens,
        ], item.cell.values
        asked += len(answer.calls)
    assert not found
    assert len(model.calls) < asked


def test_equal_prompts_of_one_answer_are_one_call(tmp_path):
    text = "The lamp is lit."
    question = Question(id="1", text="Is it lit?", documents=("a", "b"), answers=("yes",))
    twins = DataSet(name="twins", documents={"a": text, "b": text}, questions=[question])
    model = RecordingModel()
    grid = {"k": 2, "chunk_size": 32, "method": "map_reduce", "passage_tokens": 6}
    assert run(experiment(model, data=twins, grid=grid, metrics=["token_f1"]), tmp_path / "r.db").complete
    assert rows(tmp_path / "r.db", "SELECT calls FROM answers") == [(3,)]
    assert len(model.calls) == 2


@pytest.mark.parametrize("given", ["reference.toml", None, {"name": "x"}])
def test_what_is_no_experiment_is_refused_and_no_file_is_made(given, tmp_path):
    for carry_out in (run, make_plan):
        with pytest.raises(OptionError, match=r"must be an Experiment, such as from Experiment\.from_file\(\), got"):
            carry_out(given, tmp_path / "r.db")
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_asks_nothing_and_changes_nothing(tmp_path):
    path = tmp_path / "results.db"
    model = RecordingModel()
    first = run(experiment(model, grid={**GRIDS["orders"], "k": 3}), path)
    before = everything(path)
    again = RecordingModel()
    second = run(experiment(again, grid={**GRIDS["orders"], "k": 3}), path)
    assert second.complete
    assert not again.calls
    assert (second.total, second.answered, second.spent) == (first.total, first.answered, first.spent)
    assert everything(path) == before


def everything(path):
    """All rows but those about runs themselves."""
    tables = ["cells", "questions", "replies", "failed_calls", "answers", "embedders", "vectors"]
    return {table: rows(path, f"SELECT * FROM {table}") for table in tables}


def test_an_added_value_asks_only_what_is_new(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(), grid={"k": [3], "chunk_size": 32, "method": ["stuff", "refine"]}), path)
    before = everything(path)
    model = RecordingModel()
    grid = {"k": [3, 5], "chunk_size": 32, "method": ["stuff", "refine"]}
    report = run(experiment(model, grid=grid), path)
    assert report.complete
    after = everything(path)
    for table, found in before.items():
        assert set(found) <= set(after[table]), table
    whole = RecordingModel()
    run(experiment(whole, grid=grid), tmp_path / "other.db")
    assert len(model.calls) == len(set(whole.calls)) - len(before["replies"])


def test_experiments_in_one_file_share_replies(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(), name="first"), path)
    model = RecordingModel()
    report = run(experiment(model, name="second", grid={"k": [4, 6], "chunk_size": 32}), path)
    assert report.complete
    assert len(model.calls) == 6
    assert rows(path, "SELECT experiment, count(*) FROM results GROUP BY 1") == [("first", 6), ("second", 12)]
    # Each has spent what it asked itself.
    assert report.spent.calls == 6


def test_an_added_metric_is_scored_without_a_call(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(), metrics=["token_f1"]), path)
    model = RecordingModel()
    report = run(experiment(model, metrics=["rouge_l", "token_f1"]), path)
    assert report.complete
    assert not model.calls
    assert {tuple(json.loads(scores)) for (scores,) in rows(path, "SELECT scores FROM results")} == {
        ("rouge_l", "token_f1")
    }
    # Their sequence does not matter.
    before = everything(path)
    run(experiment(model, metrics=["token_f1", "rouge_l"]), path)
    assert everything(path) == before


def test_repeats_ask_again_and_share_among_themselves(tmp_path):
    path = tmp_path / "results.db"
    count = iter(range(1_000))
    model = RecordingModel(lambda text: f"Reply {next(count)}.")
    grid = {"k": 4, "chunk_size": 32, "repeat": [1, 2], "order": ["source", "random"], "seed": [0, 1]}
    report = run(experiment(model, grid=grid), path)
    assert report.total == 36
    found = rows(path, 'SELECT repeat, "order", seed, question_id, answer FROM results')
    by_repeat = {repeat: {row[4] for row in found if row[0] == repeat} for repeat in (1, 2)}
    assert not by_repeat[1] & by_repeat[2]
    assert Counter(model.calls).most_common(1)[0][1] == 2
    assert len(model.calls) == 2 * len(set(model.calls))
    orders = {(row[1], row[2]): row[4] for row in found if row[0] == 1 and row[3] == "0-0"}
    assert len(set(orders.values())) == 3


def test_two_runs_at_a_time_in_one_file(tmp_path):
    path = tmp_path / "results.db"
    # Another reply at each call, so that mixing would be seen.
    count = iter(range(10_000))
    models = [RecordingModel(lambda text: f"{reply_to(text)}\n{next(count)}", seconds=0.002) for _ in range(2)]
    grid = {"k": 4, "chunk_size": 32, "method": ["stuff", "map_reduce", "refine"], "order": ["source", "rank"]}
    reports = []
    threads = [
        threading.Thread(target=lambda model=model: reports.append(run(experiment(model, grid=grid), path)))
        for model in models
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [report.complete for report in reports] == [True, True]
    last = RecordingModel()
    report = run(experiment(last, grid=grid), path)
    assert (report.complete, last.calls) == (True, [])
    # The reply of the last step is the answer.
    for answer, reply in rows(
        path,
        "SELECT answers.text, replies.text FROM answers, json_each(answers.replies) AS call "
        "JOIN replies ON replies.key = call.value ->> 1 WHERE call.key = answers.calls - 1",
    ):
        assert answer == reply


def test_progress_is_told_while_nothing_is_done(tmp_path):
    seen: list[RunReport] = []
    meeting = Meeting()
    small = experiment(RecordingModel(meeting=meeting), data=keepers(1, 2), max_concurrency=1, metrics=["token_f1"])

    def on_progress(progress: RunReport) -> None:
        seen.append(progress)
        if sum(progress.running == 1 and progress.done == 0 for progress in seen) >= 2:
            meeting.open()

    report = run(small, tmp_path / "results.db", on_progress=on_progress)
    assert report.complete
    # The first call ended only after it had been told of twice.
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    last = seen[-1]
    assert (last.done, last.total, last.remaining, last.failed) == (2, 2, 0, {})
    assert (last.spent.calls, last.running, last.outcome) == (2, 0, "")


def test_questions_that_no_metric_can_score_are_not_asked(tmp_path):
    path = tmp_path / "results.db"
    books = keepers()
    bare = replace(books, questions=tuple(replace(question, answers=(), evidence=()) for question in books.questions))
    model = RecordingModel()
    with pytest.raises(ExperimentError) as raised:
        run(experiment(model, data=bare), path)
    for words in (
        "no question has gold answers (for token_f1, exact_match, answer_cosine)",
        "no question has gold answers with letters from a to z or digits (for rouge_l)",
        "no question has evidence (for evidence_coverage)",
        'metrics = ["paper_token_usage"]',
    ):
        assert words in str(raised.value)
    assert (model.calls, path.exists()) == ([], False)
    assert run(experiment(model, data=bare, metrics=["inverted_pairs"]), path).complete
    # Nobody is asked for a context alone.
    assert run(experiment(None, data=bare, grid={"k": 4, "method": "context_only"}), path).complete


@pytest.mark.parametrize("metric", METRICS)
def test_what_can_be_scored_is_what_is_scored(metric, tmp_path):
    path = tmp_path / "results.db"
    methods = ["stuff", "closed_book", "context_only"]
    grid = [{"k": 4, "chunk_size": 32, "method": method} for method in methods]
    books = keepers()
    kept = [
        replace(books.questions[0], choices=("Ada", "Ben"), right_choice=0),
        replace(books.questions[1], answers=()),
        replace(books.questions[2], evidence=()),
        replace(books.questions[3], answers=("艾达布兰德",)),
    ]
    small = experiment(RecordingModel(), grid=grid, data=replace(books, questions=tuple(kept)), metrics=[metric])
    plan = make_plan(small)
    assert run(small, path).complete
    scored = rows(path, "SELECT count(DISTINCT question) FROM answers WHERE scores <> '{}'")
    assert scored == [(plan.scorable[metric].questions,)]
