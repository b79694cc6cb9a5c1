"""Own pipelines: functions, runnables and query engines as methods beside ours."""

import json
import re
import threading
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import ChatMessage, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import NodeWithScore, TextNode

from oprag import Chunk, Passage, Span, build_context
from oprag.compare import DataSet, Evidence, Experiment, Pipeline, Question, compare, make_plan, write_report
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.spending import Limits
from oprag.errors import ExperimentError, ModelError, OptionError
from oprag.llama_index import LocalEmbedding
from oprag.methods.answer import Answer
from oprag.methods.prompts import Message, Prompt
from oprag.pipeline.context_report import METADATA_KEY, passage_to_dict
from tests.compare.helpers import RecordingModel, experiment, keepers, rows, text_of

DATA = keepers()


def asked(run: Any, **options: Any) -> Experiment:
    return Experiment(
        name="own", data={"keepers": DATA}, methods={"mine": Pipeline(run, version=1)}, metrics=["token_f1"], **options
    )


def passage(text: str, *spans: Span) -> Document:
    """A passage that oprag stitched."""
    return Document(text, metadata={METADATA_KEY: passage_to_dict(Passage(text, (Chunk(text, 0),), spans))})


def reply(run: Any, question: str = "Who?") -> Any:
    completion = Pipeline(run, version=1).complete(Prompt((Message("user", question),), "pipeline"))
    if completion.error is not None:
        raise completion.error
    return json.loads(completion.text)


def test_it_is_one_setting_beside_ours_with_the_same_pairs(tmp_path):
    said: list[str] = []

    def mine(question: str) -> str:
        said.append(question)
        return "Nobody"

    ours = experiment(
        RecordingModel(lambda _: DATA.questions[0].answers[0]),
        grid={"k": [2, 4], "chunk_size": 32, "order": ["source", "rank"]},
    )
    both = ours.replace(methods={"mine": Pipeline(mine, version="a")}, metrics=["token_f1"])
    results = compare(both, tmp_path / "r.db")
    assert results.run is not None
    assert results.run.complete, text_of(results.run)
    assert len(results.rows) == 4 + 1
    assert sorted(said) == sorted(question.text for question in DATA.questions)
    row = results.rows[-1]
    assert row["method"] == "pipeline:mine"
    assert (row["order"], row["k"], row["model"], row["tokens"], row["calls"]) == (None,) * 5
    assert row["token_f1_n"] == len(DATA.questions)
    assert "How does mine compare?" in {one.question for one in results.verdicts("token_f1")}
    write_report(tmp_path / "r.db", tmp_path / "r.html")
    assert "pipeline:mine" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_stored_answers_are_used_until_its_version_changes(tmp_path):
    calls: list[str] = []

    def mine(question: str) -> str:
        calls.append(question)
        return "x"

    count = len(DATA.questions)
    for _ in range(2):
        compare(asked(mine), tmp_path / "r.db")
        assert len(calls) == count
    compare(asked(mine).replace(methods={"mine": Pipeline(mine, version=2)}), tmp_path / "r.db")
    assert len(calls) == 2 * count
    # Under another name it is another pipeline.
    compare(asked(mine).replace(name="other", methods={"theirs": Pipeline(mine, version=1)}), tmp_path / "r.db")
    assert len(calls) == 3 * count


def test_chunks_that_it_returns_are_scored_where_they_are_found(tmp_path):
    text = str(DATA.documents["book 0"])
    start = DATA.questions[0].evidence[0].start

    def mine(question: str) -> Any:
        return "x", [
            Document(text[start : start + 200], metadata={"source": "book 0", "start_index": start}),
            "elsewhere",
        ]

    found = asked(mine).replace(metrics=["token_f1", "evidence_coverage", "recall", "inverted_pairs"])
    row = compare(found, tmp_path / "r.db").rows[0]
    # Only the questions about the first book have their evidence there.
    assert 0 < row["evidence_coverage"] < 1
    assert row["context_tokens"] > 0
    assert "recall" not in row
    assert "inverted_pairs" not in row
    notes = {note for (text,) in rows(tmp_path / "r.db", "SELECT notes FROM answers") for note in json.loads(text)}
    assert "1 of 2 chunks are not in the documents of the question" in notes


def test_a_chunk_is_found_in_the_document_that_it_names(tmp_path):
    words = "Ada keeps it."
    evidence = (Evidence("b", 0, len(words)),)
    question = Question(id="1", text="Who?", documents=("a", "b"), answers=("Ada",), evidence=evidence)
    data = DataSet(name="set", documents={"a": words, "b": words}, questions=[question])
    own = asked(lambda _: ("x", [Document(words, metadata={"source": "folder/b"})]))
    results = compare(own.replace(data={"set": data}, metrics=["evidence_coverage"]), tmp_path / "r.db")
    assert results.rows[0]["evidence_coverage"] == 1


@pytest.mark.parametrize(
    ("chunks", "score"),
    [
        ([], 0),
        (["Ben keeps it."], 0),  # of another document
        ([Document("rewritten", metadata={"source": "folder/b"})], 0),
        (["rewritten"], None),
        ([Document("rewritten", metadata={"source": "ab"})], None),
        ([" "], None),
    ],
)
def test_chunks_of_other_documents_cover_nothing_and_unknown_ones_have_no_score(tmp_path, chunks, score):
    question = Question(id="1", text="Who?", documents=("a",), answers=("Ada",), evidence=(Evidence("a", 0, 3),))
    data = DataSet(name="set", documents={"a": "Ada keeps it.", "b": "Ben keeps it."}, questions=[question])
    own = asked(lambda _: ("x", chunks)).replace(data={"set": data}, metrics=["token_f1", "evidence_coverage"])
    assert compare(own, tmp_path / "r.db").rows[0].get("evidence_coverage") == score


FACT = DATA.questions[0].evidence[0]
WORDS = str(DATA.documents["book 0"])[FACT.start : FACT.end].split(" ")
HALVES = " ".join(WORDS[:4]), " ".join(WORDS[4:])
TWO = Span(FACT.start, FACT.start + len(HALVES[0])), Span(FACT.end - len(HALVES[1]), FACT.end)


@pytest.mark.parametrize(
    ("chunk", "covered"),
    [
        (passage("\n--\n".join(HALVES), *TWO), FACT.end - FACT.start - 1),  # without the space between the two
        ("\n\n".join(HALVES), FACT.end - FACT.start),
        ("".join(HALVES), FACT.end - FACT.start),
        ("\n--\n".join(HALVES), 0),
        (passage("a summary", *TWO), 0),
        (passage("a summary", Span(10**6, 10**6 + 9)), 0),
        (passage(HALVES[0], Span(0, len(HALVES[0]))), len(HALVES[0])),  # the span of another document
    ],
)
def test_stitched_passages_are_found(tmp_path, chunk, covered):
    data = DataSet(name="one", documents=DATA.documents, questions=DATA.questions[:1])
    one = asked(lambda _: ("x", [chunk])).replace(data={"one": data}, metrics=["token_f1", "evidence_coverage"])
    score = covered / (FACT.end - FACT.start) if covered else None
    assert compare(one, tmp_path / "r.db").rows[0].get("evidence_coverage") == score
    missing = [] if covered else ["1 of 1 chunks are not in the documents of the question"]
    assert rows(tmp_path / "r.db", "SELECT notes FROM answers") == [(json.dumps(missing),)]


@pytest.mark.parametrize(
    ("given", "answer", "chunks"),
    [
        ("x", "x", None),
        (("x", ["a", "b"]), "x", [["a", None, None, []], ["b", None, None, []]]),
        (("x", []), "x", []),
        (AIMessage("x"), "x", None),
        ({"answer": AIMessage("x"), "context": [Document("a")]}, "x", [["a", None, None, []]]),
        (
            {"answer": "x", "context": [Document("a", metadata={"source": "s", "start_index": 3})]},
            "x",
            [["a", "s", 3, []]],
        ),
        ({"result": "x", "source_documents": []}, "x", []),
        ((AIMessage("x"), [NodeWithScore(node=TextNode(text="a"), score=1.0)]), "x", [["a", None, None, []]]),
        (("x", [Chunk("a", 0, source="s")]), "x", [["a", "s", None, []]]),
        (Answer("Who?", "x", "stuff", (build_context([Chunk("a", 0)]),), ()), "x", [["a", None, None, []]]),
        (Answer("Who?", "x", "closed_book", (), ()), "x", None),
        (("x", [passage("a b", Span(0, 1), Span(2, 3))]), "x", [["a b", None, None, [[0, 1], [2, 3]]]]),
        (("x", [passage("a b", Span(0, 1, "7"), Span(0, 1, "8"))]), "x", [["a b", None, None, []]]),
        (("x", [Document("a", metadata={METADATA_KEY: "mine"})]), "x", [["a", None, None, []]]),
    ],
)
def test_what_pipelines_return_is_read(given, answer, chunks):
    assert reply(lambda _: given) == {"answer": answer, "chunks": chunks}


def test_reasoning_is_not_scored(tmp_path):
    right = DATA.questions[0].answers[0]
    replies = iter([f"<think>Is it {right}?</think>Nobody", f"<think>Nobody?</think>{right}", f"<think>{right}"])
    three = DataSet(name="three", documents=DATA.documents, questions=DATA.questions[:3])
    three = replace(three, questions=tuple(replace(one, answers=(right,)) for one in three.questions))
    own = asked(lambda _: next(replies), max_concurrency=1).replace(data={"three": three})
    compare(own, tmp_path / "r.db")
    found = sorted(rows(tmp_path / "r.db", "SELECT scores ->> 'token_f1', notes FROM answers"))
    assert found == [(0.0, '["the model\'s reply was empty"]'), (0.0, "[]"), (1.0, "[]")]


def test_other_messages_of_an_error_are_counted(tmp_path):
    replies = iter([None, None, 5])
    three = DataSet(name="three", documents=DATA.documents, questions=DATA.questions[:3])
    compare(asked(lambda _: next(replies), max_concurrency=1).replace(data={"three": three}), tmp_path / "r.db")
    with ResultsReader.open(tmp_path / "r.db") as reader:
        (failure,) = reader.failures()
    assert (failure.count, failure.same) == (3, 2)
    assert failure.describe().endswith("got None (2 times, and other messages)")


def test_empty_answers_and_unknown_tokens_are_not_hidden(tmp_path):
    count = len(DATA.questions)
    results = compare(asked(lambda _: " "), tmp_path / "r.db")
    assert (results.rows[0]["empty"], results.rows[0]["tokens"]) == (count, None)
    names = ("tokens", "input_tokens", "output_tokens", "cached_tokens", "estimated")
    assert {answer[name] for answer in results.answers() for name in names} == {None}
    assert rows(tmp_path / "r.db", f"SELECT DISTINCT {', '.join(names[1:4])} FROM results") == [(None, None, None)]
    assert rows(tmp_path / "r.db", "SELECT calls, tokens FROM spending") == [(count, None)]


def test_a_verdict_says_that_every_question_failed_and_why(tmp_path):
    def broken(question: str) -> str:
        raise RuntimeError("no server")

    both = asked(lambda _: "x").replace(
        methods={"works": Pipeline(lambda _: "x", version=1), "broken": Pipeline(broken, version=1)}
    )
    why = r"all answers failed: 6 × RuntimeError: .* no server"
    (said,) = [one for one in compare(both, tmp_path / "r.db").verdicts() if one.question == "How does broken compare?"]
    assert re.fullmatch(f"Cannot tell. (?i:{why}).", said.describe())
    for metric in (None, "token_f1"):
        with pytest.raises(OptionError, match=f"there are no scores, since {why}; remove the cause"):
            compare(asked(broken), tmp_path / "s.db").verdicts(metric)


def test_a_runnable_is_invoked_and_its_tokens_are_those_of_its_calls(tmp_path):
    usage = {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34}
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])

    def chain(*usages: Any) -> Any:
        messages = (AIMessage("forty tons", usage_metadata=one) for _ in range(99) for one in usages)
        model = GenericFakeChatModel(messages=messages)
        twice: Any = RunnableLambda(
            lambda question: [(prompt | model).invoke({"question": question}) for _ in range(2)][-1]
        )
        return twice | RunnableLambda(lambda message: message.content)

    row = compare(asked(chain(usage), max_concurrency=1, limits={"tokens": 9_999}), tmp_path / "r.db").rows[0]
    assert row["tokens"] == 2 * 34
    # If one call says nothing, the sum is unknown.
    row = compare(asked(chain(usage, None), max_concurrency=1), tmp_path / "s.db").rows[0]
    assert row["tokens"] is None


def test_a_token_limit_stops_at_unknown_tokens(tmp_path):
    limited = asked(lambda _: "x", max_concurrency=1, limits={"tokens": 10**6})
    for _ in range(2):
        run = compare(limited, tmp_path / "r.db").run
        assert run is not None
        assert (run.spent.calls, run.spent.tokens) == (1, None)
        assert "a pipeline did not report its tokens, which limits.tokens needs; use limits.calls" in run.outcome
    assert "limits: 1,000,000 tokens (unknown spent)" in make_plan(limited, tmp_path / "r.db").describe()


class Talking(CustomLLM):
    """An LLM that reports its tokens as OpenAI does."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text="seven", raw={"usage": {"prompt_tokens": 50, "completion_tokens": 2}})

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError


def test_a_query_engine_is_queried_with_its_nodes_and_tokens(tmp_path):
    nodes = [TextNode(text=text, metadata={"source": name}) for name, text in DATA.documents.items()]
    engine = VectorStoreIndex(nodes, embed_model=LocalEmbedding()).as_query_engine(llm=Talking(), similarity_top_k=1)
    row = compare(asked(engine).replace(metrics=["token_f1", "evidence_coverage"]), tmp_path / "r.db").rows[0]
    assert row["tokens"] == 52
    assert row["evidence_coverage"] > 0


def test_a_chat_that_is_a_completion_is_counted_once(tmp_path):
    def chat(question: str) -> str:
        return str(Talking().chat([ChatMessage(question)]).message.content)

    assert compare(asked(chat), tmp_path / "r.db").rows[0]["tokens"] == 52


def test_concurrent_answers_keep_their_tokens_apart(tmp_path):
    model = GenericFakeChatModel(
        messages=iter(
            AIMessage("x", usage_metadata={"input_tokens": n, "output_tokens": 0, "total_tokens": n})
            for n in range(1, 99)
        )
    )
    lock = threading.Lock()
    barrier = threading.Barrier(2, timeout=20)

    def mine(question: str) -> str:
        barrier.wait()
        with lock:
            model.invoke(question)
        barrier.wait()
        return "x"

    compare(asked(mine, max_concurrency=2), tmp_path / "r.db")
    counts = sorted(count for (count,) in rows(tmp_path / "r.db", "SELECT input_tokens FROM replies"))
    assert counts == list(range(1, len(DATA.questions) + 1))


def test_a_plan_runs_nothing_and_says_that_tokens_are_unknown(tmp_path):
    plan = make_plan(asked(lambda _: pytest.fail("asked")))
    assert plan.calls == len(DATA.questions)
    assert f"pipeline:mine: {plan.calls} calls, tokens unknown" in plan.describe()
    assert plan.money is None
    with pytest.raises(ExperimentError, match=r"limits\.money requires known costs, but 'mine' has no price"):
        asked(lambda _: "x", limits=Limits(money=1))


@pytest.mark.parametrize("given", [None, 7, {"text": 1}, ("x", "chunks"), ("x", [7]), ["x"]])
def test_what_cannot_be_read_is_an_error(given):
    with pytest.raises(ModelError, match=r"a pipeline must return|must be a list|a chunk must be"):
        reply(lambda _: given)


def test_what_is_no_pipeline_is_refused():
    def mine(question: str) -> str:
        return question

    async def slow(question: str) -> str:
        return question

    for wrong in (None, 7, "tests:mine", str):
        with pytest.raises(ExperimentError, match="a pipeline must be a function"):
            Pipeline(wrong, version=1)
    with pytest.raises(ExperimentError, match="must not be async"):
        Pipeline(slow, version=1)
    for version in ("", " ", None, True, 1.5):
        with pytest.raises(ExperimentError, match="the version of a pipeline must be"):
            Pipeline(mine, version=version)  # type: ignore[arg-type]
    data = {"keepers": DATA}
    with pytest.raises(ExperimentError, match=r"methods\.mine must be an instance of Pipeline, got"):
        Experiment(name="x", data=data, methods={"mine": mine})
    with pytest.raises(ExperimentError, match="grid is missing"):
        Experiment(name="x", data=data)
    with pytest.raises(ExperimentError, match="methods must be a mapping"):
        Experiment(name="x", data=data, methods=[mine])
