"""Results as `search_result` content blocks, by which some models cite, and the citations in what they answer.

The form is that of Anthropic's Messages API. Each passage is one block, whose title begins with its number. A citation
repeats source, title and text of the block, so it is resolved by these, however the prompt was changed.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from oprag._internal.masking import describe
from oprag.agents.numbered_text import Part, head_of
from oprag.chunk import Passage
from oprag.errors import OptionError
from oprag.methods.answer import part
from oprag.options import ContextOptions
from oprag.pipeline.context_report import METADATA_KEY
from oprag.pipeline.render import without_markers

__all__ = [
    "Form",
    "ProviderCitation",
    "fingerprint",
    "has_blocks",
    "is_block",
    "numbered_blocks",
    "plain_blocks",
    "read_answer",
    "source_name",
    "text_in",
]

Form = Literal["text", "search_result"]

_NUMBER = re.compile(r"\[(\d{1,6})\]")
_UNKNOWN = "unknown"  # a block must have a source and a title


class ProviderCitation(NamedTuple):
    """A citation that the provider of a model attached to an answer.

    Attributes:
        start: Start offset of the text that cites, in the text of the answer.
        end: End offset (exclusive).
        title: The title of what is cited.
        source: Its source or URL.
        text: The cited text.
    """

    start: int
    end: int
    title: str | None
    source: str | None
    text: str | None

    @property
    def number(self) -> int:
        """The number at the start of the title; 0 without one."""
        found = _NUMBER.match(self.title or "")
        return int(found[1]) if found else 0


def source_name(source: str | None) -> str:
    """The source of a block, as a citation repeats it."""
    return source if source and not source.isspace() else _UNKNOWN


def numbered_blocks(parts: Iterable[Part], sources: Mapping[int, str | None]) -> list[dict[str, Any]]:
    """The blocks of a result, with the sources of its numbers."""
    return [
        _block(f"[{one.number}] {one.head}".rstrip(), sources[one.number], one.text)
        if one.number
        else {"type": "text", "text": one.text}
        for one in parts
    ]


def plain_blocks(passages: Iterable[Passage]) -> list[dict[str, Any]]:
    """The blocks of passages without numbers."""
    options = ContextOptions()
    return [
        _block(without_markers(head_of(options, 0, passage.chunks[0])), passage.source, passage.text)
        for passage in passages
        if passage.text.strip()
    ]


def _block(title: str, source: str | None, text: str) -> dict[str, Any]:
    return {
        "type": "search_result",
        "source": source_name(source),
        "title": title or _UNKNOWN,
        "content": [{"type": "text", "text": text}],
        "citations": {"enabled": True},
    }


def is_block(value: Any) -> bool:
    """Whether this is a `search_result` block."""
    return isinstance(value, Mapping) and value.get("type") == "search_result"


def has_blocks(content: Any) -> bool:
    """Whether the content of a message has `search_result` blocks."""
    return isinstance(content, list) and any(map(is_block, content))


def text_in(content: Any) -> str:
    """The text of a result, with the sources and titles of its blocks."""
    return "\n".join(itertools.chain.from_iterable(map(_texts, _blocks(content))))


def fingerprint(content: str | list[Any]) -> str:
    """What a model reads of a result, as one text that no other result has."""
    return content if isinstance(content, str) else json.dumps([*map(_texts, content)], ensure_ascii=False)


def _blocks(content: Any) -> Sequence[Any]:
    return content if isinstance(content, list | tuple) else (content,)


def _texts(block: Any) -> list[str]:
    texts = [block] if isinstance(block, str) else [part(block, "text")]
    if is_block(block):
        texts = [
            block.get("source"),
            block.get("title"),
            *(part(one, "text") for one in _blocks(block.get("content"))),
        ]
    return [text for text in texts if isinstance(text, str)]


def read_answer(answer: Any) -> tuple[str, list[ProviderCitation]]:
    """The text of an answer and the citations in its blocks.

    Args:
        answer: A text; a message of LangChain, LlamaIndex or Anthropic's client; or the list of its content blocks.

    Raises:
        OptionError: `answer` is something else.
    """
    # LlamaIndex has its blocks there, and joins their texts by line breaks.
    blocks = part(answer, "blocks")
    between = "" if blocks is None else "\n"
    if blocks is None:
        blocks = answer if isinstance(answer, str | list) else part(answer, "content")
    if isinstance(blocks, str):
        return str(blocks), []
    if not isinstance(blocks, list | tuple):
        raise OptionError(f"answer must be a text or a message, got {describe(answer)}", answer)
    texts: list[str] = []
    citations: list[ProviderCitation] = []
    start = end = 0
    for block in blocks:
        kind = part(block, "type") or part(block, "block_type")
        text = block if isinstance(block, str) else part(block, "text") if kind == "text" else None
        if isinstance(text, str):
            start = end + len(between) * bool(texts)
            end = start + len(text)
            texts.append(text)
            citations += _citations(block, start, end)
        elif kind == "citation":
            # In LlamaIndex, it follows the text that cites.
            cited = part(part(block, "cited_content"), "text")
            citations.append(
                ProviderCitation(start, end, *map(_text, (part(block, "title"), part(block, "source"), cited)))
            )
    return between.join(texts), citations


def _citations(block: Any, start: int, end: int) -> Iterator[ProviderCitation]:
    """The citations of a block of text: those of Anthropic, or the annotations to which LangChain converts them."""
    for one in (*_listed(block, "citations"), *_listed(block, "annotations")):
        extras = part(one, "extras")
        extras = extras if isinstance(extras, Mapping) else {}
        if extras.keys() == {METADATA_KEY}:
            # Ours, made from a marker in the text.
            continue
        first, last = part(one, "start_index"), part(one, "end_index")
        inside = type(first) is int and type(last) is int and 0 <= first <= last <= end - start
        yield ProviderCitation(
            start + first if inside else start,
            start + last if inside else end,
            _text(part(one, "title") or part(one, "document_title")),
            _text(part(one, "source") or extras.get("source") or part(one, "url")),
            _text(part(one, "cited_text")),
        )


def _listed(value: Any, name: str) -> Sequence[Any]:
    listed = part(value, name)
    return listed if isinstance(listed, list | tuple) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
