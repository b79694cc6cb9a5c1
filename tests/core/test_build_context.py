import random
from typing import Any

from oprag import ContextOptions, Passage, build_context
from oprag.context import ContextInputs, assemble
from tests.helpers import hit, ranks, texts


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
