import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Context, build_context
from oprag.errors import BudgetError, TokenizerError
from tests.helpers import cut, hit, prose, ranks


def line(*lengths: int, **metadata: Any) -> list[Chunk]:
    """Chunks of these lengths, ranked in the given sequence; no two touch."""
    return [
        hit(chr(ord("a") + rank) * length, rank, chunk_index=2 * rank, **metadata)
        for rank, length in enumerate(lengths)
    ]


def reasons(context: Context) -> dict[int, tuple[str, float | None]]:
    return {drop.chunk.rank: (drop.reason, drop.value) for drop in context.dropped}


# Chunks by the numbers of their characters, best first; the budget in characters; what is charged, if any goes.
CASES: dict[str, tuple[list[int], int, dict[str, Any], list[int], dict[int, int]]] = {
    "the walk goes on after a chunk that does not fit": ([10, 50, 10, 50, 10], 35, {}, [0, 2, 4], {1: 50, 3: 50}),
    "separators": ([10, 10, 10], 34, {"separator": "\n\n"}, [0, 1, 2], {}),
    "no room for a separator": ([10, 10, 10], 33, {"separator": "\n\n"}, [0, 1], {2: 12}),
    "a smaller chunk fits with its separator": ([10, 10, 5], 20, {"separator": "\n\n"}, [0, 2], {1: 12}),
    "no separator before the first kept chunk": ([100, 10], 10, {"separator": "\n\n"}, [1], {0: 100}),
    "no gap before the first kept chunk": ([100, 10], 12, {"gap": "[...]"}, [1], {0: 100}),
    "headers": ([10, 10, 10], 51, {"header": "# {source}"}, [0, 1, 2], {}),
    "no room for a header": ([10, 10, 10], 50, {"header": "# {source}"}, [0, 1], {2: 17}),
    "a header function": ([10, 10], 40, {"header": lambda passage: "#" * 15}, [0], {1: 26}),
}


@pytest.mark.parametrize(("lengths", "token_budget", "options", "kept", "charges"), CASES.values(), ids=CASES)
def test_everything_that_is_rendered_is_charged(lengths, token_budget, options, kept, charges):
    context = build_context(line(*lengths), token_budget=token_budget, count_tokens=len, **{"separator": "", **options})
    assert ranks(context.kept) == kept
    assert reasons(context) == {rank: ("token_budget", charge) for rank, charge in charges.items()}
    for drop in context.dropped:
        assert drop.detail.startswith(f"needs {drop.value} tokens, only ")


@pytest.mark.filterwarnings("ignore::oprag.errors.SourceWarning")
def test_no_gap_is_charged_between_unknown_sources():
    chunks = [Chunk("a" * 10, 0), Chunk("b" * 10, 1)]
    context = build_context(chunks, token_budget=20, count_tokens=len, separator="", gap="[...]")
    assert context.text == "a" * 10 + "b" * 10


def test_what_stitching_frees_is_reported_and_not_filled_again():
    text = prose(40)
    chunks = cut(text, [(0, 60), (40, 100), (200, 230)])
    context = build_context(chunks, token_budget=125, count_tokens=len, separator="")
    assert context.text == text[:100]
    assert (context.tokens, context.charged, context.freed_tokens) == (100, 120, 20)
    assert reasons(context) == {2: ("token_budget", 30)}


# --- counters ---


def squares(text: str) -> int:
    """Far more for a long text than for its parts."""
    return len(text) ** 2 // 50


def roots(text: str) -> int:
    """Far less for a long text than for its parts."""
    return math.ceil(math.sqrt(len(text)))


COUNTERS: dict[str, Callable[[str], Any]] = {
    "characters": len,
    "words": lambda text: len(text.split()),
    "superadditive": squares,
    "subadditive": roots,
    "overhead": lambda text: len(text) + 7,
    "floats": lambda text: len(text) / 3,
    "numpy": lambda text: np.int64(len(text)),
    "separators": lambda text: 100 * text.count("\n\n") + len(text),
    "parity": lambda text: len(text) * (1 + len(text) % 2),
    "nothing": lambda text: 0,
}


@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("options", [{}, {"header": "[{source} {rank}]", "gap": "[...]"}, {"stitch": False}])
def test_the_rendered_text_is_within_the_budget_under_any_counter(name, options):
    counter = COUNTERS[name]
    text = prose(300, seed=5)
    generator = random.Random(name)
    for token_budget in (5, 20, 60, 150, 400, 2000):
        spans = [(start, start + generator.randrange(5, 120)) for start in generator.sample(range(len(text) - 120), 12)]
        chunks = cut(text, spans)
        try:
            context = build_context(chunks, token_budget=token_budget, count_tokens=counter, **options)
        except BudgetError:
            # True for each of them alone, then.
            for chunk in chunks:
                assert counter(build_context([chunk], **options).text) > token_budget
            continue
        assert context.tokens == math.ceil(counter(context.text)) <= token_budget
        assert context.kept
        assert sorted(ranks(context.kept) + list(reasons(context))) == ranks(chunks)
        assert all(drop.value is not None and drop.reason == "token_budget" for drop in context.dropped)


def test_while_the_text_is_over_the_budget_the_worst_chunk_goes():
    # Charged one by one the three are 2 each; together they are more than their sum.
    context = build_context(line(10, 10, 10), token_budget=8, count_tokens=squares, separator="")
    assert ranks(context.kept) == [0, 1]
    assert context.tokens == 8
    assert reasons(context) == {2: ("token_budget", 18)}
    assert context.dropped[0].detail == "the text with this chunk has 18 tokens, more than the budget of 8"


@pytest.mark.parametrize(
    "tokens", [None, -1, -0.5, True, "12", float("nan"), float("inf"), [1], Decimal(3), 1j], ids=repr
)
def test_a_counter_that_gives_no_count_is_refused(tokens):
    with pytest.raises(TokenizerError, match="count_tokens must return a non-negative number") as caught:
        build_context(line(10), token_budget=5, count_tokens=lambda text: tokens)
    assert caught.value.value is tokens


def test_the_error_of_a_counter_is_the_callers():
    def counter(text):
        raise LookupError(text)

    with pytest.raises(LookupError):
        build_context(line(10), token_budget=5, count_tokens=counter)


@given(
    st.lists(
        st.tuples(st.text("ab \n", max_size=12), st.sampled_from("xy"), st.integers(0, 30)), min_size=1, max_size=8
    ),
    st.integers(1, 60),
    st.sampled_from(sorted(COUNTERS)),
    st.sampled_from(["source", "rank", "edges"]),
)
def test_an_error_is_raised_only_when_no_chunk_alone_fits(given_chunks, token_budget, name, order):
    counter = COUNTERS[name]
    chunks = [
        Chunk(text, rank, metadata={"source": source, "chunk_index": 100 * rank + position})
        for rank, (text, source, position) in enumerate(given_chunks)
    ]
    options: dict[str, Any] = {"order": order, "gap": "~~", "count_tokens": counter}
    alone = [math.ceil(counter(build_context([chunk], **options).text)) for chunk in chunks]
    try:
        context = build_context(chunks, token_budget=token_budget, **options)
    except BudgetError:
        assert min(alone) > token_budget
    else:
        assert math.ceil(counter(context.text)) <= token_budget
        assert context.kept
        # The best chunk is never left out while it fits alone and the counter adds up.
        if name == "characters" and alone[0] <= token_budget:
            assert 0 in ranks(context.kept)
