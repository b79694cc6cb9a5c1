import random
from typing import Any

from oprag import ContextOptions, Passage, build_context
from oprag.context import ContextInputs, assemble
from tests.helpers import hit, ranks, texts


def test_spans_that_were_void_stay_void_when_the_rest_is_assembled_again():
    # The third chunk shows that the offsets cannot be true; without it nothing else does.
    chunks = [
        hit("aaaa bbbb cccc dddd", 0, verse=1, start_index=0),
        hit("dddd eeee ffff gggg", 1, verse=2, start_index=15),
        hit("other text", 2, verse=3, start_index=2),
    ]
    context = build_context(chunks, position_key="verse", k=2)
    again = build_context(context.kept, position_key="verse", k=2)
    assert again.text == context.text


def test_twenty_thousand_chunks_take_seconds():
    order = list(range(20_000))
    random.Random(0).shuffle(order)
    chunks = [hit(f"text {place}\n", rank, chunk_index=place) for rank, place in enumerate(order)]
    context = build_context(chunks, k=10_000, separator="")
    assert len(context.kept) == len(context.dropped) == 10_000
    assert texts(context.kept) == [f"text {place}\n" for place in sorted(order[:10_000])]


def test_what_a_framework_shows_is_what_the_budget_counts():
    chunks = [hit("x" * 10, rank, chunk_index=2 * rank) for rank in range(3)]

    def show(passage: Passage) -> str:
        return f"<{passage.text}>"

    options: dict[str, Any] = {"count_tokens": len, "separator": "", "header": "# long header {source}", "gap": "[...]"}
    shown = "<xxxxxxxxxx>\n\n<xxxxxxxxxx>"
    assert ranks(
        assemble(ContextInputs(chunks, show=show), ContextOptions(token_budget=len(shown), **options)).kept
    ) == [0, 1]
    assert ranks(
        assemble(ContextInputs(chunks, show=show), ContextOptions(token_budget=len(shown) - 1, **options)).kept
    ) == [0]
    assert len(assemble(ContextInputs(chunks, show=show), ContextOptions(**options)).kept) == 3
