"""`answer` and `compare`: all that is known about an answer, and several methods over one search."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.utils import AddableDict
from pydantic import ValidationError

from oprag import Context, OptionError
from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from oprag.methods import Answer, Comparison
from tests.adapters.langchain.chain.conftest import SOURCE, Found, Model, chain_of, every_way, full_chain, ranked, run
from tests.adapters.langchain.conftest import numbers_of, parts, store_of
from tests.adapters.scripted import BOOK, METHODS, QUESTION, STEPS, both_sides, by_step, part_numbers
from tests.meeting import Clock


async def ask(chain: Any, *given: Any, is_async: bool, **more: Any) -> Answer:
    answer: Answer = await chain.aanswer(*given, **more) if is_async else chain.answer(*given, **more)
    return answer


async def compare(chain: Any, methods: Sequence[str], *, is_async: bool) -> Comparison:
    compared: Comparison = await chain.acompare(QUESTION, methods) if is_async else chain.compare(QUESTION, methods)
    return compared


@both_sides
async def test_an_answer_holds_what_it_was_made_of(is_async: bool):
    model = Model(reply=by_step)
    answer = await ask(chain_of(model, method="map_reduce", max_concurrency=1), QUESTION, is_async=is_async)
    assert (answer.question, answer.method) == (QUESTION, "map_reduce")
    assert answer.text == str(answer) == by_step(model.read[-1])
    assert [call.step for call in answer.calls] == ["map"] * 4 + ["reduce"]
    assert [call.prompt.text for call in answer.calls] == model.read
    assert [call.reply for call in answer.calls] == list(map(by_step, model.read))
    assert isinstance(answer.context, Context)
    assert part_numbers(answer.context.text) == [0, 1, 2, 3]
    assert [part_numbers(passage.text) for passage in answer.passages] == [[0], [1], [2], [3]]
    assert (answer.failed_calls, answer.notes, answer.citations) == ((), (), ())
    assert 0 <= max(call.seconds for call in answer.calls) <= answer.seconds
    assert answer.standalone_question is answer.route is answer.parsed is None


@both_sides
@pytest.mark.parametrize("method", METHODS)
async def test_every_answer_can_be_explained_and_saved(is_async: bool, method: str):
    chain = full_chain(Model(reply=by_step), method, cite=True)
    answer = await ask(chain, QUESTION, is_async=is_async, chat_history=[("Who sailed?", "Ada.")])
    report = answer.explain()
    assert QUESTION in report
    assert method in report
    assert str(len(answer.calls)) in report
    saved = json.loads(json.dumps(answer.to_dict()))
    assert saved["text"] == answer.text
    assert [call["step"] for call in saved["calls"]] == [call.step for call in answer.calls]
    assert answer.standalone_question == by_step(answer.calls[0].prompt.text)


@both_sides
async def test_the_answer_is_that_of_invoke(is_async: bool):
    for method in METHODS:
        chain = full_chain(Model(reply=by_step), method)
        assert (await ask(chain, QUESTION, is_async=is_async)).text == chain.invoke(QUESTION)["answer"]


@both_sides
async def test_route_answers_and_confidences(is_async: bool):
    routed = await ask(full_chain(Model(reply=by_step), "self_route"), QUESTION, is_async=is_async)
    assert routed.route == "long_context"
    assert routed.passages[0].text == BOOK
    direct = await ask(full_chain(Model(), "self_route"), QUESTION, is_async=is_async)
    assert (direct.route, len(direct.calls)) == ("rag", 1)
    model = Model(reply=by_step)
    reranked = await ask(chain_of(model, method="map_rerank", max_concurrency=1), QUESTION, is_async=is_async)
    told = [float(re.findall(r"\d+$", by_step(prompt))[0]) for prompt in model.read]
    assert [one.confidence for one in reranked.answers] == told
    best = told.index(max(told))
    assert [one.chosen for one in reranked.answers] == [number == best for number in range(4)]
    assert reranked.text == by_step(model.read[best]).split("\n")[0]
    other = await ask(full_chain(Model(reply=by_step), "reciprocal", variants=2), QUESTION, is_async=is_async)
    assert [one.question for one in other.answers] == by_step(other.calls[0].prompt.text).splitlines()
    assert all(one.cosine is not None for one in other.answers)


@both_sides
async def test_choices(is_async: bool):
    model = Model(reply=lambda prompt: "B")
    chain = chain_of(model, prompts={"answer": "ANSWER {context} Q: {question} {instruction} {choices}"})
    answer = await ask(chain, QUESTION, is_async=is_async, choices=["a storm", "a {calm}"])
    assert answer.text == "B"
    assert "A. a storm\nB. a {calm}" in model.read[0]
    assert "letter" in model.read[0]
    model.calls.clear()
    assert chain.invoke({"input": QUESTION, "choices": ("a storm", "a {calm}")})["answer"] == "B"
    assert "A. a storm\nB. a {calm}" in model.read[0]


@both_sides
async def test_choices_belong_to_the_question_that_was_asked_first(is_async: bool):
    model = Model(reply=by_step)
    chain = full_chain(model, "step_down", variants=2)
    await ask(chain, QUESTION, is_async=is_async, choices=["a storm", "a calm"])
    shown = {step: "A. a storm" in prompt for step, prompt in zip(model.steps, model.read, strict=True)}
    assert shown == {"variants": True, "answer": False, "aggregate": True}


@pytest.mark.parametrize(
    "history",
    [
        [HumanMessage("Who sailed?"), AIMessage("Ada.")],
        [("Who sailed?", "Ada.")],
        [("human", "Who sailed?"), ("ai", "Ada.")],
        ({"role": "user", "content": "Who sailed?"}, {"role": "assistant", "content": "Ada."}),
    ],
    ids=["messages", "pairs", "roles", "mappings"],
)
@both_sides
async def test_chat_history(history: Any, is_async: bool):
    model = Model(reply=by_step)
    answer = await ask(chain_of(model), "And then?", is_async=is_async, chat_history=history)
    assert model.read[0] == "CONDENSE Human: Who sailed?\nAssistant: Ada. Q: And then?"
    assert answer.standalone_question == by_step(model.read[0])
    assert (answer.question, answer.calls[0].step) == ("And then?", "condense")


@both_sides
async def test_further_inputs_fill_prompts(is_async: bool):
    model = Model()
    chain = chain_of(model, input_key="ask", prompts={"answer": "{context} {question} {language}"})
    await ask(chain, QUESTION, is_async=is_async, language="German")
    assert model.read[0].endswith(f"{QUESTION} German")


@both_sides
async def test_an_answer_without_passages_costs_nothing(is_async: bool):
    model = Model()
    for method in METHODS:
        chain = full_chain(model, method, retriever=Found(documents=[]), empty_answer="Nothing there.")
        answer = await ask(chain, QUESTION, is_async=is_async)
        assert (answer.text, answer.calls, answer.usage.input_tokens) == ("Nothing there.", (), 0)
        assert answer.notes
    assert model.calls == []


# Citations


def citing(prompt: str) -> str:
    """Cites every number that it read, the last one first."""
    read = re.findall(r"\[(\d+)\]", prompt)
    return " ".join(f"Said [{number}]." for number in reversed(list(dict.fromkeys(read))))


@both_sides
@pytest.mark.parametrize("method", ["stuff", "map_reduce", "refine"])
async def test_citations_lead_to_the_passages_that_had_the_numbers(is_async: bool, method: str):
    model = Model(reply=citing)
    chain = chain_of(model, method=method, retriever=Found(documents=ranked(parts(3) + parts(3, "log.txt"))), cite=True)
    answer = await ask(chain, QUESTION, is_async=is_async)
    assert answer.citations
    # What stands under each number, up to the next one or the question.
    pieces = [re.split(r"\[(\d+)\]\n", prompt.split(" Q: ")[0])[1:] for prompt in model.read]
    shown = {number: text.strip() for piece in pieces for number, text in zip(piece[::2], piece[1::2], strict=True)}
    for citation in answer.citations:
        assert answer.text[citation.start : citation.end] == f"[{citation.number}]"
        assert citation.passage.text == shown[str(citation.number)]
        assert citation.source == citation.passage.source
        assert str(citation.source) in citation.passage.text
    assert {citation.source for citation in answer.citations} == {"voyage.txt", "log.txt"}


@both_sides
async def test_citations_of_inner_questions_lead_to_the_passages_of_their_own_context(is_async: bool):
    """Each variant finds another document, and each answer calls it [1]."""

    class ByQuestion(Found):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            name = {"Who?": "crew.txt", "Where?": "map.txt"}.get(query, "voyage.txt")
            return parts(1, name)

    def reply(prompt: str) -> str:
        if prompt.startswith("VARIANTS"):
            return "Who?\nWhere?"
        return "Said [1]." if prompt.startswith("ANSWER") else " ".join(re.findall(r"\[\d+\]", prompt))

    chain = chain_of(Model(reply=reply), method="step_down", variants=2, retriever=ByQuestion(documents=[]), cite=True)
    answer = await ask(chain, QUESTION, is_async=is_async)
    assert [(citation.number, citation.source) for citation in answer.citations] == [(1, "crew.txt"), (2, "map.txt")]


@both_sides
@pytest.mark.parametrize("budget", [20, 40, 80])
async def test_numbers_are_within_the_token_budget(is_async: bool, budget: int):
    retriever = OrderPreservingRetriever(
        vectorstore=store_of(parts(30)), token_budget=budget, count_tokens=lambda text: len(text.split())
    )
    model = Model(reply=citing)
    chain = OrderPreservingChain(llm=model, retriever=retriever, cite=True, prompts=STEPS)
    answer = await ask(chain, QUESTION, is_async=is_async)
    assert answer.context is not None
    assert answer.context.tokens <= budget
    assert len(answer.context.text.split()) <= budget
    assert answer.context.text in model.read[0]
    assert answer.context.text.startswith("[1]")
    last = len(answer.passages)
    assert [citation.number for citation in answer.citations] == list(range(last, 0, -1))
    assert all(citation.passage is answer.passages[citation.number - 1] for citation in answer.citations)
    plain = await ask(OrderPreservingChain(llm=Model(), retriever=retriever), QUESTION, is_async=is_async)
    assert plain.context is not None
    assert "[1]" not in plain.context.text
    assert len(plain.context.kept) >= len(answer.context.kept)


async def test_spans_and_pages_of_citations():
    from langchain_core.documents import Document

    text = "Ada sailed north. Then the storm came. All was well."
    starts = [(0, 17), (18, 38), (39, 52)]
    documents = [
        Document(text[start:end], metadata={"source": "a.pdf", "page": page, "start_index": start, "end_index": end})
        for page, (start, end) in enumerate(starts)
    ]
    chain = chain_of(
        Model(reply=lambda prompt: "So it was [2]."), retriever=Found(documents=ranked(documents)), cite=True
    )
    (citation,) = chain.answer(QUESTION).citations
    assert citation.source == "a.pdf"
    assert citation.passage.text in text
    assert citation.page == citation.passage.spans[0].page
    assert citation.span is not None
    assert text[citation.span.start : citation.span.end] == citation.passage.text


async def test_without_cite_nothing_is_cited():
    answer = chain_of(Model(reply=lambda prompt: "As [1] says.")).answer(QUESTION)
    assert answer.citations == ()


def test_citations_need_a_header_that_can_hold_a_number():
    with pytest.raises(ValueError, match="header"):
        chain_of(Model(), cite=True, header=lambda passage: "above")
    model = Model()
    chain_of(model, cite=True, header="<{number}|{source}>").invoke(QUESTION)
    assert model.read[0].startswith(f"ANSWER <1|{SOURCE}>\n")


# Comparisons


@both_sides
async def test_methods_share_one_search(is_async: bool):
    model, retriever = Model(reply=by_step), Found(documents=ranked(parts(4)))
    methods = ["stuff", "refine", "map_reduce", "map_rerank", "long_context", "self_route"]
    compared = await compare(full_chain(model, "stuff", retriever=retriever), methods, is_async=is_async)
    assert retriever.asked == [QUESTION]
    assert [answer.method for answer in compared] == methods
    assert len(compared) == 6
    contexts = {id(answer.context) for answer in compared}
    assert len(contexts) == 1
    for answer in compared:
        alone = await ask(full_chain(Model(reply=by_step), answer.method), QUESTION, is_async=is_async)
        assert (answer.text, len(answer.calls)) == (alone.text, len(alone.calls))


@both_sides
async def test_questions_of_the_model_are_searched_for_once(is_async: bool):
    retriever = Found(documents=ranked(parts(2)))
    chain = full_chain(Model(reply=by_step), "stuff", retriever=retriever, variants=2)
    await compare(chain, ["step_down", "reciprocal"], is_async=is_async)
    assert len(retriever.asked) == len(set(retriever.asked)) == 3


@both_sides
async def test_what_belongs_to_a_question_belongs_to_its_comparison(is_async: bool):
    model, retriever = Model(reply=by_step), Found(documents=ranked(parts(2)))
    prompts = {"answer": "ANSWER {context} In {language}: {question}", "map": "MAP {context} In {language}: {question}"}
    chain: Any = chain_of(model, retriever=retriever, prompts=STEPS | prompts)
    given: dict[str, Any] = {"choices": ["a storm", "a calm"], "language": "German"}
    methods = ["stuff", "map_reduce"]
    compared = (
        await chain.acompare(QUESTION, methods, **given) if is_async else chain.compare(QUESTION, methods, **given)
    )
    asked = [call.prompt.text for answer in compared for call in answer.calls if call.step in {"answer", "map"}]
    assert len(asked) == 3
    assert all(text.endswith(f"In German: {QUESTION}\nA. a storm\nB. a calm") for text in asked)


@both_sides
async def test_a_follow_up_is_searched_for_only_as_it_stands_by_itself(is_async: bool):
    retriever = Found(documents=ranked(parts(2)))
    chain: Any = chain_of(Model(reply=by_step), retriever=retriever)
    said = {"chat_history": [("Who sailed?", "Ada.")]}
    methods = ["stuff", "refine"]
    compared = (
        await chain.acompare("And then?", methods, **said) if is_async else chain.compare("And then?", methods, **said)
    )
    assert {answer.standalone_question for answer in compared} == set(retriever.asked)
    assert len(retriever.asked) == 1


@both_sides
async def test_the_seconds_of_a_comparison_leave_out_the_search(is_async: bool, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)

    class Slow(Found):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            clock.jump(1_000)
            return self.documents

    compared = await compare(
        chain_of(Model(), retriever=Slow(documents=parts(2))), ["stuff", "refine"], is_async=is_async
    )
    assert all(answer.seconds < 1_000 for answer in compared)


@both_sides
async def test_a_comparison_is_a_table(is_async: bool):
    compared = await compare(chain_of(Model(reply=by_step)), ["stuff", "map_reduce"], is_async=is_async)
    lines = str(compared).splitlines()
    assert QUESTION in lines[0]
    head, *rows = [line for line in lines[1:] if line.strip() and not set(line.strip()) <= set("-─ ")]
    assert [head.index(word) for word in ("method", "calls", "seconds", "passages", "answer")] == sorted(
        head.index(word) for word in ("method", "calls", "seconds", "passages", "answer")
    )
    assert rows[0].split()[:2] == ["stuff", "1"]
    assert rows[1].split()[:2] == ["map_reduce", "5"]
    assert repr(compared) == str(compared)
    assert [row["calls"] for row in compared.rows()] == [1, 5]
    assert [row["answer"] for row in compared.rows()] == [answer.text for answer in compared]


class Cells(HTMLParser):
    """The texts of the cells, and whether every tag that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@both_sides
async def test_a_comparison_in_a_notebook_shows_text_and_no_markup_of_others(is_async: bool):
    chain = chain_of(Model(reply=lambda prompt: "<script>alert('x')</script> & <b>bold</b>"))
    compared = await compare(chain, ["stuff"], is_async=is_async)
    cells = Cells()
    cells.feed(compared._repr_html_())
    assert cells.open == []
    assert cells.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "<script>alert('x')</script> & <b>bold</b>" in cells.texts
    assert QUESTION in cells.texts


async def test_a_table_stays_a_table_whatever_is_in_it():
    text = "A\nreply\r\nof \x1b[31m several\tlines. " * 200
    chain = chain_of(Model(reply=lambda prompt: text))
    compared = chain.compare("A question\nof two lines?", ["stuff", "refine"])
    lines = str(compared).splitlines()
    assert len([line for line in lines if line.split()[:1] in (["stuff"], ["refine"])]) == 2
    assert "\x1b" not in str(compared)
    # A long answer must not make a line that a terminal breaks dozens of times.
    assert max(map(len, lines)) <= 240
    assert compared[0].text == text


@both_sides
@pytest.mark.parametrize(
    ("methods", "named"),
    [(["stuff", "nonsense"], "nonsense"), (["reciprocal"], "embeddings"), (["self_route"], "read_source")],
)
async def test_methods_that_cannot_work_are_refused_before_anything_is_spent(
    is_async: bool, methods: list[str], named: str
):
    model, retriever = Model(), Found(documents=parts(2))
    with pytest.raises(OptionError, match=named):
        await compare(chain_of(model, retriever=retriever), methods, is_async=is_async)
    assert (model.calls, retriever.asked) == ([], [])


@both_sides
async def test_the_chain_stays_as_it_was(is_async: bool):
    model = Model(reply=by_step)
    chain = chain_of(model, method="refine")
    await compare(chain, ["stuff"], is_async=is_async)
    model.calls.clear()
    assert (await ask(chain, QUESTION, is_async=is_async)).method == "refine"
    assert len(model.calls) == 4


async def test_a_history_aware_retriever_is_asked_once_for_a_comparison():
    from langchain_core.runnables import RunnableLambda

    asked: list[Any] = []

    def search(given: Any) -> Any:
        asked.append(given)
        return parts(2)

    chain_of(Model(), retriever=RunnableLambda(search)).compare(QUESTION, ["stuff", "refine"])
    assert asked == [{"input": QUESTION}]


def test_documents_of_several_searches_are_given_once():
    result = full_chain(Model(reply=by_step), "step_down", variants=2).invoke(QUESTION)
    assert numbers_of(result["context"]) == [0, 1, 2, 3]


# Answers in pieces


async def streamed(chain: Any, *given: Any, is_async: bool, **more: Any) -> list[Any]:
    if is_async:
        return [piece async for piece in chain.astream_answer(*given, **more)]
    return list(chain.stream_answer(*given, **more))


@both_sides
@pytest.mark.parametrize("method", METHODS)
async def test_a_streamed_answer_is_that_of_answer(is_async: bool, method: str):
    chain = full_chain(Model(reply=by_step), method, cite=True)
    history = [("Who sailed?", "Ada.")]
    *texts, answer = await streamed(chain, QUESTION, is_async=is_async, chat_history=history)
    assert isinstance(answer, Answer)
    assert all(isinstance(text, str) for text in texts)
    assert "".join(texts) == answer.text
    whole = await ask(chain, QUESTION, is_async=is_async, chat_history=history)
    assert answer.text == whole.text
    assert [call.prompt for call in answer.calls] == [call.prompt for call in whole.calls]
    assert (answer.citations, answer.notes, answer.route) == (whole.citations, whole.notes, whole.route)


@both_sides
async def test_a_streamed_answer_without_passages(is_async: bool):
    *texts, answer = await streamed(chain_of(Model(), retriever=Found(documents=[])), QUESTION, is_async=is_async)
    assert "".join(texts) == answer.text == "No passages were found for this question."


@both_sides
async def test_a_streamed_answer_is_one_run(collector, is_async: bool):
    config: Any = {"callbacks": [collector], "run_name": "mine"}
    await streamed(chain_of(Model()), QUESTION, is_async=is_async, config=config)
    (root,) = collector.traced_runs
    assert root.name == "mine"
    assert [child.name for child in root.child_runs] == ["OrderPreservingRetriever", "answer"]


async def test_a_streamed_answer_that_is_closed_ends_the_models_stream():
    model = Model(reply=lambda prompt: "One two three four.")
    pieces = chain_of(model).stream_answer(QUESTION)
    assert next(pieces) == "One"
    pieces.close()  # type: ignore[attr-defined]
    assert (model.running, model.cut_off) == (0, 1)
    apieces: Any = chain_of(model).astream_answer(QUESTION)
    assert await anext(apieces) == "One"
    await apieces.aclose()
    assert (model.running, model.cut_off) == (0, 2)


CITING = "He sailed [3], twice [1, 3]. [9]"


@every_way
@pytest.mark.parametrize("method", ["stuff", "map_reduce", "refine"])
async def test_the_output_says_what_is_cited(way: str, method: str):
    chain = chain_of(Model(reply=lambda prompt: CITING), method=method, cite=True)
    result = await run(chain, way, QUESTION)
    assert list(result) == ["input", "context", "answer", "citations"]
    cited = result["citations"]
    assert [one["number"] for one in cited] == [3, 1, 3]
    assert [CITING[one["start"] : one["end"]] for one in cited] == ["[3]", "[1, 3]", "[1, 3]"]
    assert [one["text"] for one in cited] == [f"Part {number} of voyage.txt." for number in (2, 0, 2)]
    assert [one["source"] for one in cited] == ["voyage.txt"] * 3
    assert json.loads(json.dumps(cited)) == cited
    assert cited == chain.answer(QUESTION).to_dict()["citations"]
    # A result can be the next input, as without citations.
    assert await run(chain, way, result) == result


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_citations_are_the_last_piece_of_a_stream(is_async: bool):
    chain = chain_of(Model(reply=lambda prompt: CITING), cite=True)
    pieces = [piece async for piece in chain.astream(QUESTION)] if is_async else list(chain.stream(QUESTION))
    assert [list(piece) for piece in pieces[:2]] == [["input"], ["context"]]
    assert {key for piece in pieces[2:-1] for key in piece} == {"answer"}
    assert list(pieces[-1]) == ["citations"]
    assert all(isinstance(piece, AddableDict) for piece in pieces)


async def test_where_nothing_is_cited_the_list_is_empty_and_without_cite_there_is_none():
    assert chain_of(Model(), cite=True).invoke(QUESTION)["citations"] == []
    assert "citations" not in chain_of(Model(reply=lambda prompt: CITING)).invoke(QUESTION)
    nothing = chain_of(Model(), retriever=Found(documents=[]), cite=True)
    assert nothing.invoke(QUESTION)["citations"] == []
    assert [piece for piece in nothing.stream(QUESTION) if "citations" in piece][-1]["citations"] == []


async def test_the_key_of_citations_can_be_another_one_or_none():
    model = Model(reply=lambda prompt: CITING)
    renamed = chain_of(model, cite=True, citations_key="quotes")
    assert renamed.output_keys == ["answer", "context", "quotes"]
    assert [one["number"] for one in renamed.invoke(QUESTION)["quotes"]] == [3, 1, 3]
    assert "quotes" in renamed.get_output_jsonschema()["properties"]
    without = chain_of(model, cite=True, citations_key=None)
    assert without.output_keys == ["answer", "context"]
    assert list(without.invoke({"input": QUESTION, "citations": "mine"})) == ["input", "citations", "context", "answer"]
    assert chain_of(model).output_keys == ["answer", "context"]
    with pytest.raises(ValidationError, match="citations_key"):
        chain_of(model, cite=True, output_key="citations")
    assert chain_of(model, output_key="citations").invoke(QUESTION)["citations"] == CITING
    with pytest.raises(ValidationError, match="citations_key"):
        chain_of(model, citations_key=5)


def test_citations_of_pages_and_in_a_chain_of_a_chain_type():
    documents = [Document("One.", id="a", metadata={"source": "b.pdf", "page": 4, "start_index": 10})]
    chain = OrderPreservingChain.from_chain_type(
        Model(reply=lambda prompt: "So [1]."), retriever=Found(documents=documents), cite=True
    )
    (citation,) = chain.invoke(QUESTION)["citations"]
    assert citation == {
        "number": 1,
        "start": 3,
        "end": 6,
        "source": "b.pdf",
        "page": 4,
        "span": {"start": 10, "end": 14, "page": 4},
        "text": "One.",
        "ids": ["a"],
    }
