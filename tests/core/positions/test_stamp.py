from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from oprag import Chunk, arrange
from oprag.errors import MissingSourceError, OptionError, PositionWarning
from oprag.positions.fields import NUMBERING_FIELD, STAMP_FIELD
from oprag.positions.stamp import stamps
from tests.helpers import hit, run_python, texts


def stamped(chunks: Sequence[Chunk], source: str | Path | None = None) -> list[dict[str, Any]]:
    """The stamps without the numbering."""
    added = stamps(chunks, source, None)
    return [{key: stamp[key] for key in stamp if key != NUMBERING_FIELD} for stamp in added]


def test_the_chunks_of_each_source_are_numbered_from_zero():
    chunks = [hit("a", 0), hit("x", 1, source="other"), hit("b", 2), hit("c", 3), hit("y", 4, source="other")]
    assert [stamp[STAMP_FIELD] for stamp in stamps(chunks, None, None)] == [0, 0, 1, 2, 1]


def test_numbers_run_through_the_pages_of_a_source():
    pages = [hit("a", 0, page=1), hit("b", 1, page=1), hit("c", 2, page=2)]
    assert stamped(pages) == [{"chunk_index": 0}, {"chunk_index": 1}, {"chunk_index": 2}]


@pytest.mark.parametrize("field", ["page", "page_number"])
@pytest.mark.parametrize("kind", [int, str, float])
def test_pages_that_go_back_are_numbered_as_given_with_a_warning(field, kind):
    pages = [hit(f"text {n}", n, **{field: kind(page)}) for n, page in enumerate([8, 9, 0, 1, 0])]
    with pytest.warns(PositionWarning, match="page numbers decrease in 'book'.*source_key=") as caught:
        added = stamped([hit("a", 5, source="other"), *pages])
    assert [stamp["chunk_index"] for stamp in added] == [0, 0, 1, 2, 3, 4]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_the_warning_about_pages_is_short():
    name = f"/data/{'folder/' * 500}manual.pdf"
    with pytest.warns(PositionWarning) as caught:
        stamped([hit(f"text {n}", n, source=name, page=page) for n, page in enumerate([10**60, 1])])
    assert "/manual.pdf'" in str(caught[0].message)
    assert len(str(caught[0].message)) <= 200


@pytest.mark.parametrize("pages", [["1", "2", "10"], [0, 0, 1], [3, None, 3], [2, "iv", 3], [None, None]])
def test_pages_that_do_not_go_back_are_not_warned_about(pages):
    assert len(stamped([hit(f"text {n}", n, page=page) for n, page in enumerate(pages)])) == len(pages)
    # Printed numbers restart in a merged file.
    assert len(stamped([hit(f"text {n}", n, page_label=label) for n, label in enumerate("121")])) == 3


def test_a_source_can_be_named_for_chunks_that_do_not_say():
    chunks = [Chunk("a", 0), hit("x", 1, source="other"), Chunk("b", 2)]
    assert stamped(chunks, "book") == [
        {"source": "book", "chunk_index": 0},
        {"chunk_index": 0},
        {"source": "book", "chunk_index": 1},
    ]


def test_a_path_names_a_source_as_it_does_in_metadata():
    by_path = stamped([Chunk("a", 0), hit("x", 1, source="books/a.txt")], Path("books/a.txt"))
    assert by_path == [{"source": "books/a.txt", "chunk_index": 0}, {"chunk_index": 1}]


def test_a_name_that_chunks_have_already_goes_on_counting():
    assert [stamp["chunk_index"] for stamp in stamps([hit("a", 0), Chunk("b", 1)], "book", None)] == [0, 1]


def numbering(*texts: str) -> str:
    (only,) = {stamp[NUMBERING_FIELD] for stamp in stamps([hit(text, n) for n, text in enumerate(texts)], None, None)}
    assert isinstance(only, str)
    return only


def test_each_source_has_a_numbering_of_its_own():
    chunks = [hit("a", 0), hit("x", 1, source="other"), hit("b", 2)]
    first, other, second = (stamp[NUMBERING_FIELD] for stamp in stamps(chunks, None, None))
    assert first == second == numbering("a", "b")
    assert other == numbering("x")


def test_other_texts_have_another_numbering():
    calls = [("a", "b"), ("ab",), ("a",), ("b", "a"), ("a", "b", ""), ("a", "", "b"), ("1:a1:b",), ("\ud800",)]
    assert len({numbering(*texts) for texts in calls}) == len(calls)


@pytest.mark.process
def test_the_numbering_is_equal_in_every_process_and_no_store_takes_it_for_a_number():
    code = "from tests.core.positions.test_stamp import numbering; print(numbering('a', 'b'))"
    assert {run_python(code, PYTHONHASHSEED=seed).strip() for seed in "01"} == {numbering("a", "b")}
    assert all(numbering(str(number))[0].isalpha() for number in range(100))


def test_the_source_key_says_which_chunks_belong_together():
    chunks = [hit("a", 0, shelf="s"), hit("b", 1, source="other", shelf="s")]
    assert [stamp["chunk_index"] for stamp in stamps(chunks, None, "shelf")] == [0, 1]


def test_stamped_chunks_are_put_in_the_sequence_in_which_they_were_stamped():
    chunks = [Chunk(text, rank, metadata={"page": 1}) for rank, text in enumerate("dbca")]
    stamped = [
        Chunk(chunk.text, 3 - chunk.rank, metadata={**chunk.metadata, **stamp})
        for chunk, stamp in zip(chunks, stamps(chunks, "book", None), strict=True)
    ]
    assert texts(arrange(stamped)) == ["d", "b", "c", "a"]


def test_a_chunk_without_a_source_is_refused():
    nameless = Chunk("b", 1, metadata={"page": 3, "title": "t"})
    with pytest.raises(
        MissingSourceError, match=r"chunk 1 does not name its source \(metadata keys: page, title\)"
    ) as caught:
        stamps([hit("a", 0), nameless], None, None)
    assert caught.value.value is nameless


def test_a_given_source_goes_before_ids_that_frameworks_make():
    pages = [Chunk("a", 0, metadata={"ref_doc_id": "x1"}), Chunk("b", 1, document_id="x2")]
    assert stamped(pages, "book") == [
        {"source": "book", "chunk_index": 0},
        {"source": "book", "chunk_index": 1},
    ]
    assert stamped(pages) == [{"chunk_index": 0}, {"chunk_index": 0}]


@pytest.mark.parametrize("source", ["", "  ", b"book", 5, float("nan"), ["book"]])
def test_a_source_that_is_no_name_is_refused(source):
    with pytest.raises(OptionError, match="source must be a non-empty string") as caught:
        stamps([hit("a", 0)], source, None)
    assert caught.value.value is source


def test_nothing_is_changed():
    chunk = hit("a", 0)
    stamps([chunk], None, None)
    assert dict(chunk.metadata) == {"source": "book"}
