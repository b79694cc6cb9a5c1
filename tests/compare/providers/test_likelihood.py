"""Likelihood models through whole runs: what they are asked, and what becomes of it."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oprag.compare.data.data_set import DataSet, Question, whole_text
from oprag.compare.plan import make_plan
from oprag.compare.providers.likelihood import LIKELIHOOD, LikelihoodModel, likelihood_prompt
from oprag.compare.providers.model import ModelSpec
from oprag.compare.results import Results
from oprag.compare.running.run import run
from oprag.errors import ExperimentError, LikelihoodError, ModelError, OptionError
from oprag.methods.model_calls import Message, Prompt
from tests.compare.helpers import RecordingModel, experiment, keepers, rows, text_of

METHODS = ["answer_likelihood", "closed_book_likelihood"]


class Reader:
    """Finds an answer the likelier, the later its words stand in the prompt; remembers what it is asked."""

    def __init__(self, window=100_000, name="reader"):
        self.name = name
        self.window = window
        self.asked: list[tuple[str, str]] = []

    def count_tokens(self, text):
        return len(text.split())

    def answer_likelihood(self, prompt, answer):
        self.asked.append((prompt, answer))
        if len(prompt) > self.window:
            raise LikelihoodError(f"the prompt has {len(prompt)} characters, and the window is {self.window}", prompt)
        return -1.0 + prompt.rfind(answer) / len(prompt) / 2


def asked_of(reader, **options):
    return experiment(None, models={"reader": ModelSpec(reader)}, **options)


def scores(path: Path) -> dict[Any, Any]:
    return {
        (method, order, question): score
        for method, order, question, score in rows(
            path,
            "SELECT method, \"order\", question_id, json_extract(scores, '$.answer_likelihood') FROM results",
        )
    }


def test_every_gold_answer_is_asked_for_behind_the_context_and_without_one(tmp_path):
    reader = Reader()
    grid = {"k": 4, "chunk_size": 32, "method": METHODS, "order": ["source", "reverse_rank"]}
    data = keepers(documents=1, questions=2)
    report = run(asked_of(reader, grid=grid, data=data), tmp_path / "results.db")
    assert report.complete, text_of(report)
    # The order means nothing without a context.
    assert report.total == 6 == report.spent.calls == len(reader.asked)
    assert isinstance(reader, LikelihoodModel)
    for question in data.questions:
        prompts = [prompt for prompt, answer in reader.asked if question.text in prompt]
        assert len(prompts) == 3
        assert all(prompt.endswith(f"Question: {question.text}\nAnswer:") for prompt in prompts)
        assert f"Question: {question.text}\nAnswer:" in prompts
        assert {answer for prompt, answer in reader.asked if question.text in prompt} == set(question.answers)
        (evidence,) = question.evidence
        fact = whole_text(data.documents["book 0"])[evidence.start : evidence.end]
        assert sum(fact in prompt for prompt in prompts) == 2
    found = scores(tmp_path / "results.db")
    # SQLite writes 15 digits into JSON.
    expected = [reader.answer_likelihood(*call) for call in list(reader.asked)]
    assert sorted(found.values()) == pytest.approx(sorted(expected))
    assert all(found["closed_book_likelihood", "source", q.id] < -1 for q in data.questions)
    assert all(
        -1 < found["answer_likelihood", order, q.id] < -0.5
        for q in data.questions
        for order in ("source", "reverse_rank")
    )
    # The text of such an answer is no answer, so nothing else is scored.
    ((metrics,),) = rows(
        tmp_path / "results.db",
        "SELECT group_concat(DISTINCT metric) FROM scores JOIN answers ON answers.id = answer "
        "JOIN cells ON cells.id = cell WHERE method = 'closed_book_likelihood'",
    )
    assert metrics == "answer_likelihood"


def test_differences_of_likelihoods_are_computed(tmp_path):
    grid = {"k": 4, "chunk_size": 32, "method": "answer_likelihood", "order": ["source", "reverse_rank"]}
    run(asked_of(Reader(), grid=grid, data=keepers(3, 4)), tmp_path / "results.db")
    (pair,) = Results.open(tmp_path / "results.db").differences("order", ["answer_likelihood"])
    found = scores(tmp_path / "results.db")
    by_order = {
        order: [score for (_, where, _), score in found.items() if where == order]
        for order in ("source", "reverse_rank")
    }
    expected = np.mean(by_order["reverse_rank"]) - np.mean(by_order["source"])
    assert expected != 0
    assert pair.difference.mean == pytest.approx(expected)


def test_of_several_gold_answers_the_best_counts(tmp_path):
    text = "The barn is red. " * 8 + "The fence is green."
    question = Question(id="q", text="What colour is it?", documents=("d",), answers=("red", "green", "blue"))
    data = DataSet(name="d", documents={"d": text}, questions=(question,))
    reader = Reader()
    grid = {"k": 8, "chunk_size": 8, "method": "answer_likelihood"}
    assert run(asked_of(reader, grid=grid, data=data), tmp_path / "results.db").complete
    # The calls are made at the same time.
    assert sorted(answer for _, answer in reader.asked) == ["blue", "green", "red"]
    figures = {answer: reader.answer_likelihood(prompt, answer) for prompt, answer in reader.asked[:3]}
    assert max(figures, key=figures.__getitem__) == "green"
    ((score, calls, tokens),) = rows(
        tmp_path / "results.db", "SELECT json_extract(scores, '$.answer_likelihood'), calls, input_tokens FROM results"
    )
    assert score == pytest.approx(figures["green"])
    assert calls == 3
    # The prompt is read for each of them.
    assert tokens == sum(reader.count_tokens(prompt) + 1 for prompt, _ in reader.asked[:3])


def test_choices_stand_below_the_question(tmp_path):
    question = Question(
        id="q", text="Which?", documents=("d",), answers=("cat",), choices=("cat", "dog"), right_choice=0
    )
    data = DataSet(name="d", documents={"d": "A cat sat."}, questions=(question,))
    reader = Reader()
    run(asked_of(reader, grid={"k": 1, "method": "answer_likelihood"}, data=data), tmp_path / "results.db")
    ((prompt, _),) = reader.asked
    assert prompt.endswith("Question: Which?\nA. cat\nB. dog\nAnswer:")


def test_a_question_without_gold_answers_has_no_likelihood_and_takes_no_call(tmp_path):
    bare = Question(id="bare", text="Who knows?", documents=("d",))
    asked = Question(id="asked", text="Who sat?", documents=("d",), answers=("cat",))
    data = DataSet(name="d", documents={"d": "A cat sat."}, questions=(bare, asked))
    reader = Reader()
    small = asked_of(reader, grid={"k": 1, "method": METHODS}, data=data)
    assert make_plan(small).calls == 2
    assert run(small, tmp_path / "results.db").complete
    assert len(reader.asked) == 2
    found = scores(tmp_path / "results.db")
    assert all(found[method, "source", "bare"] is None for method in METHODS)
    assert all(found[method, "source", "asked"] is not None for method in METHODS)
    assert rows(tmp_path / "results.db", "SELECT count(*) FROM scores WHERE metric = 'answer_likelihood'") == [(2,)]


def test_a_context_that_does_not_fit_is_a_failure_with_its_reason(tmp_path):
    reader = Reader(window=120)
    grid = {"k": 4, "chunk_size": 32, "method": METHODS}
    report = run(asked_of(reader, grid=grid, data=keepers(1, 2)), tmp_path / "results.db")
    assert (report.answered, report.failed) == (2, {"LikelihoodError": 2})
    found = rows(tmp_path / "results.db", "SELECT method, message, scores FROM results WHERE status = 'failed'")
    assert [(method, scored) for method, _, scored in found] == [("answer_likelihood", "{}")] * 2
    assert all("characters, and the window is 120" in message for _, message, _ in found)


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf, 0.5, "far", None])
def test_a_figure_that_is_none_is_a_failure(figure, tmp_path):
    reader = Reader()
    reader.answer_likelihood = lambda prompt, answer: figure  # type: ignore[method-assign]
    report = run(asked_of(reader, grid={"k": 4, "method": METHODS}, data=keepers(1, 1)), tmp_path / "results.db")
    assert report.failed == {"ModelError": 2}
    ((message,),) = rows(tmp_path / "results.db", "SELECT DISTINCT message FROM results")
    assert f"must be a number of at most 0, in nats, got {figure!r}" in message


@pytest.mark.parametrize("figure", [np.float32(-1.5), np.float64(-1.5), -1.5, 0, 1e-9])
def test_figures_of_any_kind_are_numbers(figure, tmp_path):
    reader = Reader()
    reader.answer_likelihood = lambda prompt, answer: figure  # type: ignore[method-assign]
    run(asked_of(reader, grid={"k": 4, "method": METHODS}, data=keepers(1, 1)), tmp_path / "results.db")
    assert set(scores(tmp_path / "results.db").values()) == {min(0.0, float(figure))}


def test_who_writes_and_who_judges_are_told_apart(tmp_path):
    model, reader = RecordingModel(), Reader()
    small = experiment(
        model,
        models={"m": ModelSpec(model, "model"), "reader": ModelSpec(reader)},
        grid={"k": 4, "chunk_size": 32, "model": ["m", "reader"], "method": ["stuff", "closed_book", *METHODS]},
        data=keepers(1, 1),
    )
    cells = small.grid_cells
    assert {(cell.model, cell.method) for cell in cells.cells} == {
        ("m", "stuff"),
        ("m", "closed_book"),
        *(("reader", method) for method in METHODS),
    }
    assert cells.impossible == {
        **{
            f"the model 'm' does not return likelihoods, so it does not support method={method}": 1
            for method in METHODS
        },
        **{
            f"the model 'reader' only returns likelihoods, so it does not support method={method}": 1
            for method in ("stuff", "closed_book")
        },
    }
    assert all(reason in make_plan(small).describe() for reason in cells.impossible)
    assert run(small, tmp_path / "results.db").complete
    assert (len(model.calls), len(reader.asked)) == (2, 2)


def test_figures_are_kept_under_the_name_of_the_model(tmp_path):
    grid = {"k": 4, "chunk_size": 32, "method": METHODS}
    path = tmp_path / "results.db"
    run(asked_of(Reader(), grid=grid), path)
    again, other = Reader(), Reader(name="another reader")
    run(asked_of(again, grid=grid), path)
    assert not again.asked
    run(asked_of(other, grid=grid), path)
    assert len(other.asked) == 12


def test_a_model_that_judges(tmp_path):
    reader = Reader()
    model = ModelSpec(reader).open()
    assert model.identity == "reader"
    prompt = Prompt((Message("user", "It rained. What fell?"), Message("assistant", "It")), LIKELIHOOD)
    completion = model.complete(prompt)
    assert float(completion.text) == reader.answer_likelihood("It rained. What fell?", "It")
    assert completion.usage is not None
    assert completion.usage[:2] == (5, 0)
    with pytest.raises(ModelError, match="only returns likelihoods"):
        model.complete(Prompt((Message("user", "Hello"),), "answer"))


def test_what_gives_likelihoods():
    assert all(ModelSpec(given).gives_likelihoods for given in (Reader(), "gguf:model.gguf", "transformers:gpt2"))
    for given in (Reader, RecordingModel(), "gguf", "gguf: ", "openai:gpt-5", 3):
        assert not ModelSpec(given).gives_likelihoods


def test_a_model_that_is_not_there_is_refused_before_a_run():
    pytest.importorskip("xllamacpp")
    with pytest.raises(ExperimentError, match=r"cannot use the model 'gguf:/none.gguf': model file not found:"):
        ModelSpec("gguf:/none.gguf").open()
    with pytest.raises(ExperimentError, match="unexpected keyword argument 'colour'"):
        ModelSpec("gguf:/none.gguf", colour="red").open()
    with pytest.raises((ExperimentError, OptionError), match="window must be an integer"):
        ModelSpec("gguf:/none.gguf", window=0).open()


def test_a_model_file_is_loaded_when_it_is_first_asked_and_once(tmp_path, monkeypatch):
    started = []

    class Server:
        def __init__(self, parameters):
            started.append((parameters.model.path, parameters.n_ctx))

        def request(self, route, body):
            if route == "/tokenize":
                return {"tokens": [0] * body["add_special"] + [1] * len(body["content"])}
            return {"completion_probabilities": [{"id": 1, "logprob": -0.5, "top_logprobs": []}]}

    module: Any = ModuleType("xllamacpp")
    module.CommonParams = lambda: SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setattr("oprag.compare.providers.gguf_likelihood.start_llama_server", Server)
    path = tmp_path / "model.gguf"
    with pytest.raises(ExperimentError, match="model file not found:"):
        ModelSpec(f"gguf:{path}").open()
    path.write_bytes(b"no model")
    with pytest.raises(ExperimentError, match="cannot be loaded as a GGUF model"):
        ModelSpec(f"gguf:{path}").open()
    path.write_bytes(b"GGUF and weights")
    model = ModelSpec(f"gguf:{path}", window=20).open()
    assert model.identity.startswith("gguf:model.gguf@")
    assert not started
    prompt = Prompt((Message("user", "It rained."), Message("assistant", "so")), LIKELIHOOD)
    with ThreadPoolExecutor(4) as pool:
        assert [one.text for one in pool.map(lambda _: model.complete(prompt), range(8))] == ["-0.5"] * 8
    assert started == [(str(path), 20)]
    longer = Prompt((Message("user", "It rained and rained."), Message("assistant", "so")), LIKELIHOOD)
    with pytest.raises(LikelihoodError, match="the window of 20"):
        model.complete(longer)


def test_a_text_to_be_continued():
    prompt = likelihood_prompt("First.\n\nSecond {brace}.", "What {is} it?")
    assert prompt == "First.\n\nSecond {brace}.\n\nQuestion: What {is} it?\nAnswer:"


def test_choices_have_their_letters():
    prompt = likelihood_prompt("It rained.", "Was it dry?", ("yes", "no", "nobody knows"))
    assert prompt == "It rained.\n\nQuestion: Was it dry?\nA. yes\nB. no\nC. nobody knows\nAnswer:"


def test_closed_book_begins_with_the_question():
    assert likelihood_prompt("", "What?") == "Question: What?\nAnswer:"
