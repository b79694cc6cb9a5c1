"""Passages that are shorter than `passage_tokens` are read together, as a context has them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag import Chunk, ContextOptions, build_context
from oprag.methods import MethodOptions, Task, Window, answering, packed, split_passages
from tests.core.methods.helpers import QUESTION, World, parts, words
from tests.helpers import cut, prose

ALONE = {
    "map": "{context}|{question}",
    "refine": "{existing_answer}|{context}|{question}",
    "answer": "{context}|{question}",
}


def read(world: World) -> list[str]:
    """What stood in the field of the context in each call that read passages."""
    places = {"map": 0, "answer": 0, "refine": 1}
    return [prompt.text.split("|")[places[prompt.step]] for prompt in world.prompts if prompt.step in places]


@pytest.mark.parametrize("method", ["map_reduce", "refine"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"separator": "\n---\n"},
        {"gap": "[...]"},
        {"header": "{number}: {source} at {start}"},
        {"header": lambda passage: f"<{passage.source}>", "gap": "...", "separator": "\n"},
        {"order": "rank", "gap": "[...]"},
    ],
    ids=["default", "separator", "gap", "header", "function as header", "rank order"],
)
def test_what_is_read_together_stands_as_in_the_context(method: str, options: dict[str, Any]):
    chunks = [*parts(5), *[Chunk(f"Part {n} of log.", 5 + n, metadata={"source": "log", "page": n}) for n in range(3)]]
    world = World(chunks)
    (context,) = world.answer(
        method=method, prompts=ALONE, context_options=ContextOptions(**options), passage_tokens=1_024
    ).contexts
    assert read(world) == [context.text]
    small = World(chunks)
    (context,) = small.answer(
        method=method, prompts=ALONE, context_options=ContextOptions(**options, count_tokens=words), passage_tokens=12
    ).contexts
    assert len(read(small)) > 1
    # What lies between two calls is left out; all else is the text of the context.
    rest = context.text
    for text in read(small):
        assert text in rest
        before, rest = rest.split(text, 1)
        assert not re.search("Part", before)


@pytest.mark.parametrize(("more", "calls"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("header", [None, "From {source}:"])
def test_a_passage_fills_the_window_to_the_last_token(header: str | None, more: int, calls: int):
    options = ContextOptions(count_tokens=words, header=header)
    task = Task(QUESTION, MethodOptions(method="map_reduce"), options, window=Window(200))
    room = task.room("map", context="")
    assert room is not None
    length = room.tokens - (0 if header is None else 2) + more
    world = World([Chunk("word " * length, 0, metadata={"source": "voyage", "start_index": 0})])
    world.context_options = options
    world.drive(answering(task))
    assert world.steps.count("map") == calls


@settings(max_examples=100)
@given(
    seed=st.integers(0, 9),
    size=st.integers(5, 80),
    step=st.integers(5, 120),
    left_out=st.sets(st.integers(0, 30)),
    most=st.integers(1, 60),
    counter=st.sampled_from([words, len]),
    gap=st.sampled_from([None, "[...]"]),
    header=st.sampled_from([None, "# {source}"]),
)
def test_what_holds_for_any_chunks(
    seed: int, size: int, step: int, left_out: set[int], most: int, counter: Any, gap: Any, header: Any
):
    text = prose(80, seed)
    spans = [(start, min(start + size, len(text))) for start in range(0, len(text), step)]
    spans = [span for number, span in enumerate(spans) if number not in left_out]
    context_options = ContextOptions(count_tokens=counter, gap=gap, header=header)
    context = build_context(cut(text, spans), context_options)
    task = Task(QUESTION, MethodOptions(passage_tokens=most), context_options)
    passages = split_passages(context, most)
    texts = [part.text for part in packed(task, passages)]
    # In order, each once, alone where it has no room beside a neighbour.
    assert len(texts) <= len(passages)
    rest = list(passages)
    for one in texts:
        first = rest.pop(0)
        together = [first]
        while rest and len(task_text(task, [*together, rest[0]])) <= len(one):
            together.append(rest.pop(0))
        assert one == task_text(task, together)
        assert len(together) == 1 or counter(one) <= most
        if rest:
            assert counter(task_text(task, [*together, rest[0]])) > most or counter is len
    assert not rest
    assert [part.text for part in packed(task, passages)] == texts


def task_text(task: Task, passages: list[Any]) -> str:
    """The passages as the model reads them together."""
    between = "\n\n[...]\n\n" if task.context_options.gap else "\n\n"
    return between.join(task.shown(passage, 1) for passage in passages)
