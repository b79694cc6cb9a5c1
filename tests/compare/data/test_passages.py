"""Passages, found in documents white space aside."""

import random
import re

import pytest

from oprag.compare.data.formats.llama_rag_dataset import Passages

TEXTS = {"a": "  Ada lit\nthe  lamp. It burned.", "b": "It burned. Ada lit the lamp. It burned again."}


@pytest.mark.parametrize(
    ("passage", "document", "expected"),
    [
        ("It burned.", "a", "It burned."),
        ("Ada lit the lamp.", "b", "Ada lit the lamp."),
        ("Ada  lit the lamp.", "a", "Ada lit\nthe  lamp."),
        (" lamp.\nIt", "a", "lamp. It"),
        ("Adalitthelamp.Itburnedagain.", "b", "Ada lit the lamp. It burned again."),
        ("n.", "b", "n."),
    ],
)
def test_to_the_letter_in_any_document_before_white_space_aside(passage, document, expected):
    found = Passages(TEXTS).find(passage)
    assert found is not None
    assert found.document == document
    assert TEXTS[document][found.start : found.end] == expected


@pytest.mark.parametrize("passage", ["ada lit the lamp.", "Ada lit a lamp.", "It burned again. Ada"])
def test_what_is_not_there(passage):
    assert Passages(TEXTS).find(passage) is None


def test_random_pieces_with_other_white_space_are_found_where_they_are():
    random_text = random.Random(5)
    text = "".join(f"w{number}{random_text.choice([' ', '  ', chr(10), chr(9), ''])}" for number in range(1000, 1500))
    passages = Passages({"t": text})
    for _ in range(200):
        start = random_text.randrange(len(text) - 60)
        piece = text[start : start + random_text.randrange(12, 60)]
        found = passages.find(re.sub(r"\s+|(?<=w)", " ", piece))
        assert found is not None
        assert text[found.start : found.end] == piece.strip()
