import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.compare.metrics import inverted_pairs

contexts = st.lists(
    st.tuples(st.sampled_from(["book", "letter", "note"]), st.none() | st.integers(0, 6)),
    max_size=14,
)


@given(contexts)
def test_it_is_the_share_of_the_pairs(context):
    pairs = [
        (first, second)
        for (source, first), (other, second) in combinations(context, 2)
        if source == other and first is not None and second is not None and first != second
    ]
    expected = sum(first > second for first, second in pairs) / len(pairs) if pairs else None
    assert inverted_pairs(context) == expected


@given(contexts)
def test_the_reverse_has_the_other_pairs(context):
    share = inverted_pairs(context)
    reverse = inverted_pairs(context[::-1])
    if share is None:
        assert reverse is None
    else:
        assert share + (reverse or 0) == pytest.approx(1)


def test_source_order_and_its_reverse():
    context = [("book", 1), ("letter", 0), ("book", 5), ("letter", 9)]
    assert inverted_pairs(context) == 0
    assert inverted_pairs(context[::-1]) == 1


def test_chance_is_at_one_half_also_with_ties():
    generator = random.Random(0)
    shares = [inverted_pairs([("book", generator.randrange(5)) for _ in range(20)]) or 0 for _ in range(2000)]
    assert sum(shares) / len(shares) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    "context", [[], [("book", 1)], [("book", 1), ("letter", 2)], [("book", 1), ("book", 1)], [("book", None)] * 3]
)
def test_without_a_pair_there_is_no_share(context):
    assert inverted_pairs(context) is None


def test_positions_may_be_anything_that_can_be_compared():
    assert inverted_pairs([("book", (2, "b")), ("book", (2, "a")), ("book", (1, "z"))]) == 1
    assert inverted_pairs([("book", "iv"), ("letter", 3), ("book", "v")]) == 0


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([("book", 1), ("book", "one")], "positions of one source must be comparable, in 'book'"),
        ([("book", math.nan), ("book", 1.0)], "got NaN in the source 'book'"),
        ([("book",)], "positions must be pairs"),
        ([3], "positions must be pairs"),
    ],
)
def test_what_has_no_order_is_refused(context, message):
    with pytest.raises(OptionError, match=message):
        inverted_pairs(context)


def test_many_chunks_take_no_square():
    compared = 0

    class Counting(float):
        def __lt__(self, other: float) -> bool:
            nonlocal compared
            compared += 1
            return float(self) < other

    generator = random.Random(0)
    inverted_pairs([("book", Counting(generator.random())) for _ in range(4_000)])
    # About 12 for each chunk; the square would be 4,000 for each.
    assert 4_000 < compared < 20 * 4_000
