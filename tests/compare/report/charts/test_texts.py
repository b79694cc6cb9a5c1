import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.report.charts.texts import clipped, text_width, wrapped


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("order source", ["order source"]),
        ("stuff with order source and four chunks", ["stuff with order", "source and four", "chunks"]),
        ("sentence-transformers/all-MiniLM", ["sentence-", "transformers/all-", "MiniLM"]),
        ("x" * 40, ["x" * 16, "x" * 16, "x" * 8]),
        ("  a \n b\t", ["a b"]),
        ("", []),
    ],
)
def test_text_breaks_between_words_else_behind_a_sign_else_anywhere(text, lines):
    assert wrapped(text, 100, 10, 5) == lines


def test_the_last_line_says_that_it_goes_on():
    assert wrapped("one two three four five six", 60, 10, 2) == ["one two", "three four…"]
    assert clipped("short", 100, 10) == "short"


def test_wide_letters_are_wide():
    assert text_width("漢字", 10) > text_width("ab", 10) > text_width("il", 10) > 0
    assert text_width("e\u0301", 10) == text_width("e", 10)


@given(st.text(max_size=200), st.floats(20, 400), st.integers(1, 5))
def test_no_line_is_wider_and_nothing_is_lost(text, width, most):
    lines = wrapped(text, width, 12, most)
    assert len(lines) <= most
    assert all(text_width(line, 12) <= width for line in lines)
    if not any(line.endswith("…") for line in lines):
        assert "".join("".join(lines).split()) == "".join(text.split())
