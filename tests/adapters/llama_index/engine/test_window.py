"""What LlamaIndex says of a model's context window, and the room for the reply and what the model adds."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW, DEFAULT_NUM_OUTPUTS
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel

from oprag.errors import BudgetError, ModelError
from tests.adapters.contract.frameworks import Windowed
from tests.adapters.llama_index.conftest import ListRetriever, ranked, stamped_node
from tests.adapters.llama_index.engine.conftest import (
    SOURCE,
    Model,
    every_way,
    full_engine,
    run,
)
from tests.adapters.scripted import QUESTION, both_sides
from tests.helpers import count_words

COUNT = 40


def found(size: int = 20) -> list[NodeWithScore]:
    """Parts of one source of so many words each, with gaps between them, the last one ranked best."""
    texts = [f"Part {number} of {SOURCE} " + "word " * (size - 4) for number in range(COUNT)]
    return ranked(reversed([stamped_node(text, 2 * number, source=SOURCE) for number, text in enumerate(texts)]))


def engine_with(model: Any, method: str = "stuff", size: int = 20, **options: Any) -> Any:
    given = {"retriever": ListRetriever(found(size)), "passage_tokens": 50, "count_tokens": count_words} | options
    return full_engine(model, method, **given)


def kept(**about: Any) -> int:
    return len(engine_with(Windowed(**about)).answer(QUESTION).context.kept)


def test_what_is_kept_for_the_reply_and_what_the_model_adds_count():
    most = kept()
    assert kept(replies=90) == most - 3
    # As OpenAI's models say it where no limit is set.
    assert kept(window=1_000, replies=-1) == kept(window=1_000, replies=DEFAULT_NUM_OUTPUTS)
    assert kept(system_prompt="word " * 60) == most - 3
    assert kept(system_prompt="word " * 60, chats=False) == most - 3
    assert kept(query_wrapper_prompt=PromptTemplate("word " * 60 + "{query_str}"), chats=False) == most - 3
    assert kept(completion_to_prompt=lambda text: "word " * 60 + text, chats=False) == most - 3


@pytest.mark.parametrize("window", [-1, 0, DEFAULT_CONTEXT_WINDOW])
def test_a_window_that_is_not_known_limits_nothing(window: int):
    """LlamaIndex has a default for models whose window is unknown."""
    engine = engine_with(Windowed(window=window), size=200)
    assert len(engine.answer(QUESTION).context.kept) == COUNT


class Verdict(BaseModel):
    name: str


def test_the_schema_of_objects_counts():
    about: dict[str, Any] = {"reply": lambda prompt: '{"name": "Ahab"}', "window": 400}
    plain = engine_with(Windowed(**about)).answer(QUESTION)
    engine = engine_with(Windowed(**about, system_prompt="word " * 60).as_structured_llm(Verdict))
    structured = engine.answer(QUESTION)
    assert structured.parsed == Verdict(name="Ahab")
    assert len(structured.context.kept) < len(plain.context.kept) - 3


@every_way
async def test_a_model_that_does_not_know_itself_says_so_when_it_is_called(way: str):
    class Unknown(Model):
        @property
        def metadata(self) -> LLMMetadata:
            raise ValueError("unknown model 'x-1'")

    with pytest.raises(ModelError, match="unknown model 'x-1'"):
        await run(engine_with(Unknown()), way)


def test_what_is_kept_for_the_reply_is_said():
    model = Windowed(window=100)
    with pytest.raises(
        BudgetError,
        match=r"none of the 40 retrieved chunks fits: the model's context window of 100 tokens \(30 reserved for the "
        r"reply\) leaves \d\d after the rest of the prompt, but the smallest chunk needs 100",
    ):
        engine_with(model, size=100).query(QUESTION)
    assert model.calls == []


def test_what_is_retrieved_fits_where_it_is_read():
    engine = engine_with(Windowed())
    nodes = engine.retrieve(QueryBundle(QUESTION))
    assert 0 < len(nodes) < COUNT
    for response in (engine.query(QUESTION), engine.synthesize(QUESTION, nodes)):
        assert response.source_nodes == nodes


@both_sides
async def test_given_nodes_are_never_cut(is_async: bool):
    """A list in order does not say which of them are best."""
    model = Windowed()
    engine = engine_with(model)
    with pytest.raises(BudgetError, match=r"needs 8\d\d tokens, too many for the model's context window of 200"):
        await engine.asynthesize(QUESTION, found()) if is_async else engine.synthesize(QUESTION, found())
    assert model.calls == []
