"""Quotes in answers: which text is one, and whether the passage that it cites contains it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Span
from oprag.chunk import Passage
from oprag.methods import Answer, Citation

LOG = 'She left port in mid-May, and said: "Salt is dear".\nThe crew\u2019s  mood was good.'


def passage(text: str, start: int = 0, **fields) -> Passage:
    span = Span(start, start + len(text))
    return Passage(text, (Chunk(text, start, source="log", span=span, **fields),), (span,))


def citations(answer: str, *texts: str | Passage) -> tuple[Citation, ...]:
    passages = tuple(one if isinstance(one, Passage) else passage(one) for one in texts)
    return Answer("Who?", answer, "stuff", (), (), passages=passages, cited=True).citations


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        ("It sank [1].", None),
        ('"It sank" [1]', "It sank"),
        ('It says: "It sank." [1]', "It sank."),
        ('"It sank", [1]', "It sank"),
        ('"It sank" ([1])', "It sank"),
        ('("It sank" [1])', "It sank"),
        ('**"It sank"** [1]', "It sank"),
        ('"It sank"\n\n[1]', "It sank"),
        ('"It" and "sank"[1]', "sank"),
        ("\u201cIt sank\u201d [1]", "It sank"),
        ("\u201eEs sank\u201c [1]", "Es sank"),
        ("\u201dDen sj\u00f6nk\u201d [1]", "Den sj\u00f6nk"),
        ("\u00abIl coula\u00bb [1]", "Il coula"),
        ("\u00ab\u202fIl coula\u202f\u00bb [1]", "Il coula"),
        ("\u00bbEs sank\u00ab [1]", "Es sank"),
        ("\u2018It didn\u2019t sink\u2019 [1]", "It didn\u2019t sink"),
        ("\u5f7c\u306f\u300c\u6c88\u3093\u3060\u300d[1]", "\u6c88\u3093\u3060"),
        # No quotes.
        ('It "sank" then [1]', None),
        ('a 5" pipe and a 3" [1]', None),
        ("the crews\u2019 [1]", None),
        ("the crew's and the cooks' [1]", None),
        ('" [1]', None),
        ('"" [1]', None),
        ('"..." [1]', None),
        ('It sank" [1]', None),
        ('"It [1] sank" [1]', None),
        ("[1]", None),
        # A mark inside a quote.
        ('"a 5" pipe" [1]', 'a 5" pipe'),
    ],
)
def test_a_quote_ends_right_before_its_marker(answer, quote):
    *_, citation = citations(answer, LOG)
    assert citation.quote == quote
    assert citation.to_dict()["quote"] == quote


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("She left port in mid-May", True),
        ("left port in mid-May.", True),
        ("left  port\nin mid-May,", True),
        ("She left\u00a0port", True),
        ("said: \u201cSalt is dear\u201d", True),
        ("said: \u2018Salt is dear.\u2019", False),
        ("said: 'Salt is dear'.", True),
        ("The crew's mood", True),
        ("She \u2026 in mid-May", True),
        ("She ... in mid-May", True),
        ("\u2026left port [...] mood was good\u2026", True),
        ("She (\u2026) mid-May . . . mood", True),
        # Case, letters, hyphens and order count.
        ("she left port", False),
        ("She left the port", False),
        ("She left port in midMay", False),
        ("mood \u2026 She left", False),
        ("left port\u2026left port", False),
        ("Salt is cheap", False),
    ],
)
def test_only_whitespace_quotation_marks_and_ellipses_do_not_matter(quote, found):
    (citation,) = citations(f"\u00ab{quote}\u00bb [1]", LOG)
    assert citation.misquoted is not found
    assert citation.to_dict()["misquoted"] is not found
    assert citation.cited_text == (quote if found else LOG)


def test_a_quote_that_none_of_its_passages_contains_is_reported_for_each():
    found = citations('"in June" [1, 2]; "She left" [1].', "She left.", "She came in May.")
    assert [(one.number, one.quote, one.misquoted) for one in found] == [
        (1, "in June", True),
        (2, "in June", True),
        (1, "She left", False),
    ]


def test_the_report_says_so():
    answer = Answer(
        "Who?", '"She left" [1], "nobody" [1], or [1].', "stuff", (), (), passages=(passage(LOG),), cited=True
    )
    lines = [" ".join(line.split()) for line in answer.explain().splitlines()]
    expected = ["found", "not in the passage", "-"]
    assert [line for line in lines if line.startswith("[1]")] == [f"[1] log - 0–{len(LOG)} {one}" for one in expected]


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("`x[1]` and [2]", [2]),
        ("``a ` b[1]`` [2]", [2]),
        ("```\nx[1]\n```\n[2]", [2]),
        ("It is:\n\n```python\nx[1]\n\ny[2]\n```", []),
        ("- item\n  ~~~\n  x[1]\n  ~~~\n[2]", [2]),
        ("Not closed:\n```\nx[1]", []),
        # No code.
        ("`[1]` and `[1], [2]`", [1, 1, 2]),
        ("```markdown\nIt sank [1].\n```\n", [1]),
        ("a ` b [1]", [1]),
        ("a `b\nc` [1]", [1]),
        ("``` [1]", [1]),
    ],
)
def test_markers_in_code_are_no_citations(answer, numbers):
    assert [one.number for one in citations(answer, "a", "b")] == numbers


@given(st.text(), st.integers(0, 9), st.integers(1, 9), st.text())
def test_what_is_copied_from_a_passage_is_never_misquoted(text, start, length, before):
    words = text.split()
    quote = " ".join(words[start : start + length])
    for citation in citations(f'{before} "{quote}" [1]', text):
        if citation.quote == quote:
            assert not citation.misquoted


ANYTHING = st.lists(
    st.sampled_from(
        ["[1]", "[2]", "[9]", "[1-3]", '"', "\u201c", "\u201d", "`", "```", "\n", " ", "She left", "…", "5"]
    )
    | st.text(max_size=5)
).map("".join)


@given(ANYTHING)
def test_every_citation_is_a_marker_of_the_answer(answer):
    for one in citations(answer, "She left.", "She came."):
        marker = answer[one.start : one.end]
        assert marker[0] + marker[-1] == "[]"
        assert one.number in (1, 2)
        assert one.quote is None or one.quote in answer[: one.start]
        assert one.quote is not None or not one.misquoted


@pytest.mark.parametrize(
    "answer",
    [
        '"' * 100_000 + "[1]",
        'a"' * 50_000 + "[1]",
        "a\u201d" * 50_000 + "[1]",
        '"a [1]' * 20_000,
        "`a" * 50_000 + "[1]",
        "`" * 100_000 + "[1]",
        "```\n" * 25_000 + "[1]",
        "\n " * 50_000 + "[1]",
        '"…' + "… a" * 30_000 + '" [1]',
        '"no" [1-100]' * 200,
    ],
    ids=range(10),
)
def test_a_hostile_answer_takes_no_time(answer):
    started = time.process_time()
    citations(answer, *["She left. " * 100] * 100)
    # Milliseconds; what is quadratic takes minutes.
    assert time.process_time() - started < 10
