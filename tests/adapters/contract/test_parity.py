"""LangChain's chain and LlamaIndex's engine over the same texts give equal answers, with all that is known of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.adapters.contract.frameworks import FRAMEWORKS, both_sides
from tests.adapters.contract.test_ways import over_sources

CHAIN, ENGINE = FRAMEWORKS

OPTIONS: list[dict[str, Any]] = [
    {"cite": True},
    {"k": 3, "order": "rank"},
    {"token_budget": 150, "header": "From {source}:", "gap": "[...]", "separator": "\n\n"},
    {"method": "map_reduce", "collapse_tokens": 30},
    {"method": "map_rerank", "rank_by": "cosine"},
    {"method": "step_down", "inner_method": "map_rerank", "variants": 3, "cite": True},
    {"method": "reciprocal", "inner_method": "refine", "answer_threshold": 0.9},
    {"method": "long_context", "source_token_budget": 300, "overflow": "truncate_middle"},
    {"method": "self_route", "inner_method": "refine", "source_token_budget": 300, "overflow": "truncate_end"},
]


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
@both_sides
async def test_the_rich_answers_are_equal(options: dict[str, Any], way: str):
    (chain_model, chain), (engine_model, engine) = (over_sources(framework, **options) for framework in FRAMEWORKS)
    ours, theirs = await CHAIN.answer(chain, way), await ENGINE.answer(engine, way)
    assert CHAIN.said(chain_model) == ENGINE.said(engine_model)
    assert _values(ours) == _values(theirs)
    assert [citation[:3] for citation in ours.citations] == [citation[:3] for citation in theirs.citations]
    assert bool(ours.citations) is bool(options.get("cite"))


def _values(answer: Any) -> dict[str, Any]:
    """Everything of an answer but what a framework named and a clock measured."""
    values: dict[str, Any] = answer.to_dict()
    calls = [{**call, "seconds": 0} for call in values["calls"]]
    contexts = [context.text for context in answer.contexts]
    answers = [replace(one, passage=None) for one in answer.answers]
    citations = [(one["number"], one["source"], one["span"]) for one in values["citations"]]
    return values | {
        "calls": calls,
        "seconds": 0,
        "contexts": contexts,
        "answers": answers,
        "passages": [(passage.text, passage.spans) for passage in answer.passages],
        "citations": citations,
        "found": [[chunk.rank for chunk in context.kept] for context in answer.contexts],
    }
