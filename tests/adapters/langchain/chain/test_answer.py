"""`answer` and `answer_with`, with inputs, retrievers and citations as LangChain has them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from oprag.methods import Answer
from tests.adapters.langchain.chain.conftest import Model, chain_of, every_way, run
from tests.adapters.langchain.conftest import parts, store_of
from tests.adapters.scripted import QUESTION, STEPS, both_sides


async def ask(chain: Any, *given: Any, is_async: bool, **more: Any) -> Answer:
    answer: Answer = await chain.aanswer(*given, **more) if is_async else chain.answer(*given, **more)
    return answer


# Citations


@both_sides
@pytest.mark.parametrize("budget", [20, 40, 80])
async def test_numbers_are_within_the_token_budget(is_async: bool, budget: int):
    retriever = OrderPreservingRetriever(
        vectorstore=store_of(parts(30)), token_budget=budget, count_tokens=lambda text: len(text.split())
    )
    model = Model(reply=lambda prompt: " ".join(dict.fromkeys(re.findall(r"\[\d+\]", prompt))))
    chain = OrderPreservingChain(llm=model, retriever=retriever, cite=True, prompts=STEPS)
    answer = await ask(chain, QUESTION, is_async=is_async)
    assert answer.context is not None
    assert answer.context.tokens <= budget
    assert len(answer.context.text.split()) <= budget
    assert answer.context.text in model.read[0]
    assert answer.context.text.startswith("[1]")
    last = len(answer.passages)
    assert [citation.number for citation in answer.citations] == list(range(1, last + 1))
    assert all(citation.passage is answer.passages[citation.number - 1] for citation in answer.citations)
    plain = await ask(OrderPreservingChain(llm=Model(), retriever=retriever), QUESTION, is_async=is_async)
    assert plain.context is not None
    assert "[1]" not in plain.context.text
    assert len(plain.context.kept) >= len(answer.context.kept)


CITING = "He sailed [3], twice [1, 3]. [9]"


@every_way
@pytest.mark.parametrize("method", ["stuff", "map_reduce", "refine"])
async def test_the_output_says_what_is_cited(way: str, method: str):
    chain = chain_of(Model(reply=lambda prompt: CITING), method=method, cite=True)
    result = await run(chain, way, QUESTION)
    assert list(result) == ["input", "context", "answer", "citations", "message"]
    cited = result["citations"]
    assert [one["number"] for one in cited] == [3, 1, 3]
    assert [CITING[one["start"] : one["end"]] for one in cited] == ["[3]", "[1, 3]", "[1, 3]"]
    assert [one["text"] for one in cited] == [f"Part {number} of voyage.txt." for number in (2, 0, 2)]
    assert [one["source"] for one in cited] == ["voyage.txt"] * 3
    assert json.loads(json.dumps(cited)) == cited
    assert cited == chain.answer(QUESTION).to_dict()["citations"]
    (block,) = result["message"].content_blocks
    assert block["text"] == result["message"].text == result["answer"] == CITING
    assert [
        (one["title"], one["start_index"], one["end_index"], one["cited_text"], one["extras"]["oprag"]["number"])
        for one in block["annotations"]
    ] == [(one["source"], one["start"], one["end"], one["text"], one["number"]) for one in cited]
    # A result can be the next input, as without citations.
    assert await run(chain, way, result) == result


async def test_the_key_of_citations_can_be_another_one_or_none():
    model = Model(reply=lambda prompt: CITING)
    renamed = chain_of(model, cite=True, citations_key="quotes", message_key="reply")
    assert renamed.output_keys == ["answer", "context", "quotes", "reply"]
    result = renamed.invoke(QUESTION)
    assert [one["number"] for one in result["quotes"]] == [3, 1, 3]
    assert result["reply"].text == CITING
    assert "quotes" in renamed.get_output_jsonschema()["properties"]
    without = chain_of(model, cite=True, citations_key=None, message_key=None)
    assert without.output_keys == ["answer", "context"]
    assert list(without.invoke({"input": QUESTION, "citations": "mine"})) == ["input", "citations", "context", "answer"]
    assert chain_of(model).output_keys == ["answer", "context"]
    with pytest.raises(ValidationError, match="citations_key"):
        chain_of(model, cite=True, output_key="citations")
    assert chain_of(model, output_key="citations").invoke(QUESTION)["citations"] == CITING
    with pytest.raises(ValidationError, match="citations_key"):
        chain_of(model, citations_key=5)
