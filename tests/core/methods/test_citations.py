import time

import pytest

from oprag import Chunk, Span
from oprag.chunk import Passage
from oprag.methods import Answer, Citation
from tests.core.methods.helpers import World, parts


def passages(count: int) -> list[Passage]:
    return [
        Passage(f"p{number}", (Chunk(f"p{number}", number, source="book"),), (Span(number * 10, number * 10 + 2),))
        for number in range(count)
    ]


def citations_in(text: str, passages: list[Passage]) -> tuple[Citation, ...]:
    return Answer("Who?", text, "stuff", (), (), passages=tuple(passages), cited=True).citations


def cited(text: str, count: int = 9) -> list[int]:
    return [citation.number for citation in citations_in(text, passages(count))]


def combined(*texts: str, passages: int) -> tuple[list[str | None], Answer]:
    """Answers to the questions of step_down, each from a number of passages, as they are combined."""
    world = World(
        parts(passages),
        variants="\n".join(f"{number}?" for number in range(len(texts))),
        answer=list(texts),
        aggregate=lambda prompt: prompt.text,
    )
    answer = world.answer(method="step_down", cite=True, variants=len(texts))
    return [part.text for part in answer.answers], answer


def test_answers_that_are_combined_cite_the_passages_of_all():
    texts, answer = combined("One [1], and two [1-2].", "Three [2][7].", passages=2)
    assert texts == ["One [1], and two [1, 2].", "Three [4][ 7 ]."]
    # The last one is the example in the prompt.
    read = [f"Part {number} of voyage." for number in (0, 0, 1, 1, 0)]
    assert [one.passage.text for one in answer.citations] == read


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("It sank.", []),
        ("It sank [1].", [1]),
        ("It [2] sank [1] [2].", [2, 1, 2]),
        ("[1][2]", [1, 2]),
        ("[1, 3]", [1, 3]),
        ("[1,3; 4 ,5]", [1, 3, 4, 5]),
        ("[01]", [1]),
        ("[0]", []),
        ("[9] [10]", [9]),
        ("[2, 10, 0]", [2]),
        ("[1999]", []),
        ("[12345]", []),
        ("[-1] [1.] [a1] [] [,] [1,] (1) [ 1 ]", []),
        ("[[1]]", [1]),
        ("[1", []),
    ],
)
def test_markers(text, found):
    assert cited(text) == found


def chunk(**fields) -> Chunk:
    return Chunk("x", 0, **fields)


@pytest.mark.parametrize(
    ("spans", "page", "span"),
    [
        ((), None, None),
        ((Span(3, 9),), None, Span(3, 9)),
        ((Span(3, 9, "iv"),), "iv", Span(3, 9, "iv")),
        ((Span(3, 9, 1), Span(10, 20, 1)), 1, Span(3, 20, 1)),
        ((Span(3, 9, 1), Span(0, 5, 2)), None, None),
        # The text of a sentence was replaced with the sentences around it.
        ((Span(3, 3),), None, None),
    ],
)
def test_page_and_span(spans, page, span):
    (citation,) = citations_in("[1]", [Passage("x", (chunk(),), spans)])
    assert (citation.source, citation.page, citation.span) == (None, page, span)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[1" + " " * 100_000, "[1," * 50_000, "[" + "1," * 50_000, "[1 " * 50_000], ids=range(5)
)
def test_a_model_that_runs_wild_takes_no_time(text):
    started = time.process_time()
    assert citations_in(text, passages(3)) == ()
    texts, _ = combined("First.", text, passages=3)
    assert texts == ["First.", text]
    # Milliseconds; a pattern that is quadratic takes minutes.
    assert time.process_time() - started < 20
