import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, ContextOptions
from oprag._internal.tokens import approximate_tokens
from oprag.errors import SourceReadError, SourceTooLongError
from oprag.methods import Answer
from tests.core.methods.helpers import World, parts, words
from tests.helpers import prose

LONG = prose(300)


def ask(text: str = LONG, *, counter=words, header: str | None = None, **options) -> tuple[str, Answer]:
    """What the model was shown of the source, and the answer."""
    world = World(parts(1), sources={"voyage": text})
    answer = world.answer(
        method="long_context",
        context_options=ContextOptions(count_tokens=counter, header=header),
        prompts={"answer": "{question}\0{context}"},
        **options,
    )
    return world.texts("answer")[0].split("\0", 1)[1], answer


def test_what_does_not_fit_is_an_error_by_default():
    with pytest.raises(
        SourceTooLongError, match=r"source 'voyage' has 300 tokens, more than source_token_budget=299.*truncate"
    ):
        ask(source_token_budget=299)
    world = World([*parts(1), *[Chunk("x", 9, metadata={"source": "b"})]], sources={"voyage": LONG, "b": "x"})
    with pytest.raises(SourceTooLongError, match="2 sources") as caught:
        world.answer(method="long_context", source_token_budget=9)
    assert sorted(caught.value.value) == ["b", "voyage"]
    assert world.prompts == []


def test_the_middle_is_cut_out_and_a_mark_says_so():
    shown, answer = ask(source_token_budget=51, overflow="truncate_middle")
    first, last = shown.split("\n[...]\n")
    assert LONG.startswith(first)
    assert LONG.endswith(last)
    assert 0 <= len(first) - len(last) <= 1
    assert 45 < words(shown) <= 51
    assert "truncate_middle" in answer.notes[0]


@pytest.mark.parametrize("overflow", ["truncate_middle", "truncate_end"])
@given(
    text=st.text(min_size=1, max_size=400),
    budget=st.integers(7, 60),
    counter=st.sampled_from([words, len, approximate_tokens]),
)
def test_the_result_always_fits(overflow, text, budget, counter):
    shown, answer = ask(text, counter=counter, source_token_budget=budget, overflow=overflow)
    assert counter(shown) <= budget
    assert bool(answer.notes) == (counter(text) > budget)


def test_a_chunk_without_a_source_cannot_be_read_whole():
    world = World([Chunk("text", 0)], sources={"voyage": LONG})
    with pytest.raises(SourceReadError, match="the source of a retrieved chunk is unknown") as caught:
        world.answer(method="long_context")
    assert caught.value.value.text == "text"


@pytest.mark.parametrize("second", ["B" * 400, "[9]" * 130], ids=["text", "numbers"])
def test_a_source_behind_the_cut_was_not_read(second):
    chunks = [Chunk("One.", 0, source="a"), Chunk("Two.", 1, source="b"), Chunk("Three.", 2, source="c")]
    world = World(chunks, sources={"a": "A" * 400, "b": second, "c": "C" * 400}, answer="Said [1], [2] and [3].")
    answer = world.answer(method="long_context", source_token_budget=150, overflow="truncate_end", cite=True)
    assert [passage.source for passage in answer.passages] == ["a", "b"]
    assert [one.source for one in answer.citations] == ["a", "b"]
    assert "C" not in world.prompts[0].text.partition("Question")[0]
    (note,) = answer.notes
    assert note.endswith("(truncate_end); not read at all: source 'c'")
