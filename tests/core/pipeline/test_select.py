import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from oprag import Chunk, build_context
from oprag.chunk import changed
from oprag.errors import RetrievalWarning
from tests.helpers import hit, ranks


def chosen(chunks: Sequence[Chunk], **options: Any) -> tuple[list[int], list[tuple[int, str, float | None]]]:
    context = build_context(chunks, order="rank", **options)
    return ranks(context.kept), [(drop.chunk.rank, drop.reason, drop.value) for drop in context.dropped]


FIVE = [hit(f"text {rank}", rank, chunk_index=rank) for rank in range(5)]


def test_candidates_beyond_max_candidates_are_not_looked_at():
    assert chosen(FIVE, k=2, max_candidates=3) == (
        [0, 1],
        [(2, "k", 2), (3, "max_candidates", 3), (4, "max_candidates", 3)],
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"chunk_index": 1}, {"chunk_index": 2}, id="another position"),
        pytest.param({"chunk_index": 1}, {"chunk_index": 1, "source": "other"}, id="another source"),
        pytest.param({"page": 1, "start_index": 0}, {"page": 2, "start_index": 0}, id="another page"),
        pytest.param({}, {}, id="positions unknown"),
    ],
)
def test_equal_text_elsewhere_is_no_duplicate(first, second):
    assert chosen([hit("same", 0, **first), hit("same", 1, **second)]) == ([0, 1], [])


@pytest.mark.parametrize(
    ("given", "without_ids"),
    [
        pytest.param({"text": "same", "source": "book"}, [0, 1], id="no position"),
        pytest.param({"text": "same", "source": "book", "metadata": {"page": 1}}, [0], id="a page that chunks share"),
        pytest.param({"text": "", "source": "book", "metadata": {"chunk_index": 7}}, [0, 1], id="an image, no text"),
        pytest.param({"text": "same", "metadata": {"page": 1}}, [0, 1], id="no source"),
    ],
)
def test_an_equal_id_makes_a_duplicate_where_nothing_else_does(given, without_ids):
    chunks = [Chunk(rank=rank, id=name, **given) for rank, name in enumerate("xyx")]
    assert chosen(chunks) == ([0, 1], [(2, "duplicate", 0)])
    assert chosen([changed(chunk, id=None) for chunk in chunks[:2]])[0] == without_ids


@pytest.mark.parametrize(("k", "warns"), [(None, True), (3, True), (2, False), (5, False)])
def test_copies_with_other_ids_warn_if_they_cost_chunks(k: int | None, warns: bool):
    chunks = [changed(hit(text, rank, chunk_index=int(text)), id=f"{rank}") for rank, text in enumerate("1122")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert chosen(chunks, k=k)[0] == [0, 2]
    assert [str(one.message).partition(":")[0] for one in caught if one.category is RetrievalWarning] == [
        "2 retrieved chunks are copies of others under other ids, which leaves 2 of 4"
    ] * warns
    same_id = [changed(hit("1", rank, chunk_index=1), id="1") for rank in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chosen(same_id)[0] == [0]
