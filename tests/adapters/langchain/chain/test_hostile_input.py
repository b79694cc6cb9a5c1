"""Input that is none: refused in words of ours, before anything is spent."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from oprag.errors import QueryError
from tests.adapters.langchain.chain.conftest import Found, Model, chain_of, every_way, run
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import QUESTION

NO_INPUT: list[Any] = [
    None,
    "",
    "  \n\t",
    b"bytes",
    5,
    [],
    [QUESTION],
    {},
    {"question": QUESTION},
    {"input": None},
    {"input": " \u2003\n"},
    {"input": [QUESTION]},
    {"input": HumanMessage(QUESTION)},
    HumanMessage(QUESTION),
]


@every_way
@pytest.mark.parametrize("given", NO_INPUT, ids=lambda given: repr(given).partition(" at 0x")[0][:30])
async def test_what_is_no_question_is_refused(way: str, given: Any):
    model, retriever = Model(), Found(documents=parts(2))
    with pytest.raises(QueryError) as caught:
        await run(chain_of(model, retriever=retriever), way, given)
    assert str(caught.value)
    assert model.calls == []
    assert retriever.asked == []
