"""Patterns of `grep`: what they match, which are refused, and that none takes long."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from oprag.agents.grep import Pattern
from oprag.errors import MissingExtraError, OptionError


def found(pattern: str, text: str, seconds: float = 60.0, **options: Any) -> list[str]:
    return [text[start:end] for start, end in Pattern(pattern, seconds=seconds, **options).spans(text)]


def regular(pattern: str, text: str, **options: Any) -> list[str]:
    return found(pattern, text, regex=True, **options)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a.c", "abc a.c", ["a.c"]),
        (
            " two  words ",
            "two words, two\n\nwords, two\u00a0words, twowords",
            ["two words", "two\n\nwords", "two\u00a0words"],
        ),
        ("aa", "aaaaa", ["aa", "aa"]),
        ("[1]", "see [1] and 1", ["[1]"]),
        ("Word", "word", []),
        ("\x00", "a\x00b", ["\x00"]),
        ("\ud800", "a\ud800b", ["\ud800"]),
        ("a", "", []),
    ],
)
def test_literal_text(pattern: str, text: str, expected: list[str]):
    assert found(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"\d{3}", "12 345 6789", ["345", "678"]),
        ("^b$", "a\nb\nc", ["b"]),
        ("(?i)word", "Word WORD", ["Word", "WORD"]),
        (r"(?<=No\. )\d+", "No. 7", ["7"]),
        (r"(\w)\1", "letter", ["tt"]),
        # Braces that are not counts are themselves, not approximate matching.
        ("{a}", "a {a}", ["{a}"]),
        ("(?:foo){e<=2}", "fo foo{e<=2}", ["foo{e<=2}"]),
        (r"\\{e<=1}", "\\ \\{e<=1}", ["\\{e<=1}"]),
        ("[{]", "a {", ["{"]),
        (r"\{e\}", "{e}", ["{e}"]),
    ],
)
def test_regular_expressions(pattern: str, text: str, expected: list[str]):
    assert regular(pattern, text) == expected


def test_case():
    assert found("straße", "STRAßE Straße", ignore_case=True) == ["STRAßE", "Straße"]
    assert regular("[a-c]+", "ABCD", ignore_case=True) == ["ABC"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "invalid: missing ), unterminated subpattern"),
        ("*", "invalid: nothing to repeat"),
        ("[z-a]", "invalid: bad character range z-a"),
        ("(" * 450 + "a" + ")" * 450, "invalid: too many parentheses"),
        # Syntax that only the package regex has.
        ("(?R)", "invalid: unknown extension"),
        ("(a(?1)?b)", "invalid: unknown extension"),
        ("(?V1)a", "invalid: unknown extension"),
        (r"\p{L}", "invalid: bad escape"),
        (r"\L<words>", "invalid: bad escape"),
        ("(?<!a*)b", "invalid: look-behind requires fixed-width pattern"),
        ("(?:(?:a{100}){100}){100}", "too large"),
        ("a{99999999999999999999}", "too large"),
        ("a{0,99999999999999999999}", "invalid: the repetition number is too large"),
        # Zero-width matches.
        ("^", "matches the empty string"),
        (r"\b", "matches the empty string"),
        ("(?=a)", "matches the empty string"),
        ("x*", "matches the empty string"),
    ],
)
def test_expressions_that_are_refused(pattern: str, message: str):
    with pytest.raises(OptionError, match=f"^the (regular expression|pattern).*{regex.escape(message)}"):
        regular(pattern, "a b")


@pytest.mark.parametrize("options", [{}, {"regex": True}])
def test_patterns_that_are_refused(options: dict[str, Any]):
    for pattern in ("", " \n"):
        with pytest.raises(OptionError, match="the pattern is empty"):
            Pattern(pattern, **options)
    with pytest.raises(OptionError, match="the pattern has 1,001 characters; at most 1,000 are allowed"):
        Pattern("a" * 1_001, **options)
    with pytest.raises(OptionError, match="pattern must be a string"):
        Pattern(3, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    ["(a|aa)+$c", "(?:.*a){20}c", "(?:(?:(?:a{1,99}){1,99}){1,99}){1,99}c", r"(\w+\s?)+\Bc"],
)
def test_catastrophic_backtracking_ends(pattern: str):
    text = ("a" * 60 + " ") * 100_000 + "c"
    # Without a limit it would take years.
    with pytest.raises(TimeoutError):
        regular(pattern, text, seconds=0.2)


def test_the_time_is_that_of_all_texts(monkeypatch: pytest.MonkeyPatch):
    now = iter(range(99))
    monkeypatch.setattr("oprag.agents.grep.time.monotonic", lambda: next(now))
    # Each search takes a second, and so does a text.
    pattern = Pattern("a", seconds=6)
    assert list(pattern.spans("ab")) == [(0, 1)]
    assert list(pattern.spans("")) == []
    with pytest.raises(TimeoutError):
        list(pattern.spans("ab"))


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    assert found("a", "a") == ["a"]
    with pytest.raises(MissingExtraError, match=r"a regular expression requires .*regex"):
        regular("a", "a")


@given(text=st.text("ab \n", max_size=60), pattern=st.text("ab \n", min_size=1, max_size=4))
def test_literal_hits_are_those_of_a_scan(text: str, pattern: str):
    words = pattern.split()
    if not words:
        return
    if len(words) == 1:
        at, expected = 0, []
        while (at := text.find(words[0], at)) >= 0:
            expected.append(words[0])
            at += len(words[0])
        assert found(pattern, text) == expected
    assert all(hit.split() == words for hit in found(pattern, text))
    assert found(pattern, text) == regular(r"\s+".join(words), text)
