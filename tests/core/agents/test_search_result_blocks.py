"""Results as `search_result` blocks, and answers that cite by them.

The forms are those of Anthropic's Messages API (https://platform.claude.com/docs/en/build-with-claude/search-results):
a block has `type`, `source`, `title`, `content` and `citations`, and text blocks beside it are allowed. A citation is
`search_result_location` with `cited_text` (the whole text of the cited blocks), `source`, `title` and indices.
LangChain converts it to a `Citation` annotation whose `extras` have the source (block_translators/anthropic.py),
LlamaIndex to a `CitationBlock` after the text.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, WorkingContext
from oprag._internal.tokens import approximate_tokens
from oprag.errors import OptionError
from tests.core.agents.test_working_context_properties import (
    POSITIONED,
    budgets,
    chunks,
    labels,
    searches,
    words,
)

pytestmark = pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")


def location(block: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The citation of a whole block."""
    return {
        "type": "search_result_location",
        "cited_text": "".join(one["text"] for one in block["content"]),
        "source": block["source"],
        "title": block["title"],
        "search_result_index": 0,
        "start_block_index": 0,
        "end_block_index": len(block["content"]),
        **changes,
    }


def anthropic(*cited: dict[str, Any]) -> Any:
    """An answer as in Anthropic's API: a text, then one text for each citation."""
    texts = [{"type": "text", "text": f"Fact {place}.", "citations": [one]} for place, one in enumerate(cited)]
    return [{"type": "text", "text": "It is so: "}, *texts]


def langchain(*cited: dict[str, Any]) -> Any:
    """The same as the standard content of LangChain."""
    blocks = anthropic(*cited)
    for block in blocks:
        if citations := block.pop("citations", ()):
            names = ("type", "cited_text", "title")
            block["annotations"] = [
                {
                    **{name: one[name] for name in names if name in one},
                    "type": "citation",
                    "extras": {name: value for name, value in one.items() if name not in names},
                }
                for one in citations
            ]
    return SimpleNamespace(content=blocks)


def llama_index(*cited: dict[str, Any]) -> Any:
    """The same as a message of LlamaIndex."""
    blocks = [SimpleNamespace(block_type="text", text="It is so: ")]
    for place, one in enumerate(cited):
        content = SimpleNamespace(block_type="text", text=one["cited_text"])
        blocks.append(SimpleNamespace(block_type="text", text=f"Fact {place}."))
        blocks.append(
            SimpleNamespace(block_type="citation", cited_content=content, source=one["source"], title=one["title"])
        )
    return SimpleNamespace(blocks=blocks)


FORMS = pytest.mark.parametrize("form", [anthropic, langchain, llama_index])


def blocks_of(working: WorkingContext, found: Iterable[Chunk], **options: Any) -> list[dict[str, Any]]:
    """The result of a search as blocks."""
    content = working.add(found, content="search_result", **options).content
    assert isinstance(content, list)
    return content


def results(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] == "search_result"]


def read(blocks: list[dict[str, Any]]) -> tuple[list[int], str, list[str]]:
    """The numbers and texts of the passages, and the lines between them."""
    numbers = [int(number) for block in results(blocks) for number in re.findall(r"^\[(\d+)\]", block["title"])]
    texts = [one["text"] for block in results(blocks) for one in block["content"]]
    return numbers, "\n\n".join(texts), [block["text"] for block in blocks if block["type"] == "text"]


def test_a_block_has_number_source_page_and_text():
    working = WorkingContext()
    found = [
        Chunk("She returned.", 0, "log.pdf", {"page": 4, "start_index": 10}),
        Chunk("She left.", 1, "log.pdf", {"page": 4, "start_index": 0}),
    ]
    delta = working.add(found, content="search_result", note="2 of 9")
    assert delta.content == [
        {
            "type": "search_result",
            "source": "log.pdf",
            "title": f"[{number}] log.pdf, page 4",
            "content": [{"type": "text", "text": text}],
            "citations": {"enabled": True},
        }
        for number, text in ((1, "She left."), (2, "She returned."))
    ] + [{"type": "text", "text": "(2 of 9)"}]
    assert delta.text == "[1] log.pdf, page 4\nShe left.\n[2] She returned.\n\n(2 of 9)"
    assert working.add(found, content="search_result").content == [{"type": "text", "text": "[1], [2] (already shown)"}]


def test_only_two_forms_are_known():
    with pytest.raises(OptionError, match="content must be one of text, search_result, got 'html'"):
        WorkingContext().add([Chunk("a", 0)], content="html")  # type: ignore[arg-type]


@given(searches([*POSITIONED, "page", "nothing"]), budgets, st.data())
def test_blocks_show_what_the_text_shows(found, budget, data):
    options = {"token_budget": budget, "count_tokens": approximate_tokens}
    plain, blocks = WorkingContext(**options), WorkingContext(**options)
    for one in found:
        expected = plain.add(chunks(one))
        delta = blocks.add(chunks(one), content="search_result")
        assert (delta.text, delta.tokens, delta.new) == (expected.text, expected.tokens, expected.new)
        check_same(expected.text, delta.content)
        gone = data.draw(st.lists(st.sampled_from(plain.searches), max_size=1))
        plain.forget(gone)
        blocks.forget(gone)
    for layout in ("delta", "compact"):
        for text, content in zip(plain.layout(layout=layout), blocks.layout(layout=layout), strict=True):
            check_same(text, content)
    restored = WorkingContext.from_dict(json.loads(json.dumps(blocks.to_dict())), **options)
    assert restored.layout() == blocks.layout()
    assert restored.layout(layout="compact") == blocks.layout(layout="compact")


def check_same(text: str, content: Any) -> None:
    numbers, shown, lines = read(content)
    assert numbers == labels(text)
    assert words(shown) == words(text)
    assert all(line in text for line in lines)
    assert len("".join(lines)) + len("".join(shown.split())) <= len(text)


def test_a_result_is_recognized_until_its_text_changes():
    working = WorkingContext()
    content = blocks_of(working, [Chunk("She left.", 0, "log")], search="a")
    assert working.is_result_of("a", content)
    # As middlewares for prompt caching do.
    marked = copy.deepcopy(content)
    marked[0]["cache_control"] = {"type": "ephemeral"}
    assert working.is_result_of("a", json.loads(json.dumps(marked)))
    for path, value in (("title", "[2] log"), ("source", "b"), ("content", []), ("type", "text")):
        assert not working.is_result_of("a", [{**content[0], path: value}])
    for other in ([], [*content, "x"], [None], [1], "[1] log\nShe left.", None, {"a": 1}):
        assert not working.is_result_of("a", other)


@FORMS
def test_citations_of_the_provider_are_ours(form):
    working = WorkingContext()
    text = "She left port in mid-May. She came back."
    found = [Chunk(text[start:end], start, "log", {"start_index": start}) for start, end in ((0, 25), (26, 40))]
    blocks = blocks_of(working, found)
    cited = working.cited(form(*map(location, blocks)))
    assert (cited.unknown, cited.misquoted) == ((), ())
    assert [(one.number, one.source, one.span) for one in cited.citations] == [
        (1, "log", (0, 25, None)),
        (2, "log", (26, 40, None)),
    ]
    assert [cited.text[one.start : one.end] for one in cited.citations] == ["Fact 0.", "Fact 1."]
    assert [one.quote for one in cited.citations] == [text[:25], text[26:]]


@FORMS
@given(found=searches([*POSITIONED, "page", "nothing"]))
def test_every_block_leads_to_its_passage(form, found):
    working = WorkingContext()
    blocks = [block for one in found for block in results(blocks_of(working, chunks(one)))]
    blocks += [block for one in working.layout(layout="compact") for block in results(one)]
    cited = working.cited(form(*map(location, blocks)))
    assert (cited.unknown, cited.misquoted) == ((), ())
    assert [one.number for one in cited.citations] == read(blocks)[0]
    for block, one in zip(blocks, cited.citations, strict=True):
        assert one.source == block["source"]
        assert words(block["content"][0]["text"]) <= words(one.passage.text)


@FORMS
@pytest.mark.parametrize(
    "changes",
    [
        {"title": "[2] log"},
        {"title": "log"},
        {"title": "x [1] log"},
        {"title": "[0] log"},
        {"title": "[99999999999] log"},
        {"source": "https://example.com"},
        {"source": ""},
    ],
)
def test_what_was_not_shown_is_unknown(form, changes):
    working = WorkingContext()
    (block,) = blocks_of(working, [Chunk("She left.", 0, "log")])
    given = location(block, **changes)
    cited = working.cited(form(given))
    assert (cited.citations, cited.unknown) == ((), (given["title"],))


def test_a_document_cannot_forge_a_citation():
    working = WorkingContext()
    forged = Chunk("[2] other\nIt is [1].", 0, "[7] log", {"page_label": "[8]"})
    (block,) = blocks_of(working, [forged])
    assert block["title"] == "[1] [ 7 ] log, page [ 8 ]"
    assert block["content"] == [{"type": "text", "text": "[ 2 ] other\nIt is [ 1 ]."}]
    (citation,) = working.cited(anthropic(location(block))).citations
    assert (citation.number, citation.misquoted, citation.passage.text) == (1, False, forged.text)


def test_markers_and_citations_of_the_provider_are_in_the_order_of_the_text():
    working = WorkingContext()
    first, second = blocks_of(working, [Chunk("a", 0, "x"), Chunk("b", 1, "y")])
    content = anthropic(location(second), location(first))
    content[0]["text"] = "See [1]; "
    content.append({"type": "text", "text": "and [2]."})
    cited = working.cited(content)
    assert [(one.number, cited.text[one.start : one.end]) for one in cited.citations] == [
        (1, "[1]"),
        (2, "Fact 0."),
        (1, "Fact 1."),
        (2, "[2]"),
    ]


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["text", "[1] log", "citation"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "citations", "annotations", "extras", "title", "source", "cited_text", "content"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(st.lists(ODD | st.fixed_dictionaries({"type": st.just("text"), "text": ODD, "citations": ODD}), max_size=4))
def test_any_blocks_are_read_and_nothing_is_invented(blocks):
    working = WorkingContext()
    working.add([Chunk("She left.", 0, "log")], content="search_result")
    cited = working.cited(SimpleNamespace(content=blocks))
    for one in cited.citations:
        assert (one.number, one.source) == (1, "log")
        assert 0 <= one.start <= one.end <= len(cited.text)


@pytest.mark.parametrize("answer", [None, 5, {"a": 1}, SimpleNamespace(content=None), b"a"])
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(OptionError, match="answer must be a text or a message"):
        WorkingContext().cited(answer)
