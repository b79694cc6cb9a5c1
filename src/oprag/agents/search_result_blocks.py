"""Results as `search_result` content blocks, by which some models cite.

The form is that of Anthropic's Messages API. Each passage is one block, whose title begins with its number.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

from oprag.agents.numbered_text import Part, head_of
from oprag.chunk import Passage
from oprag.methods.answer import part
from oprag.options import ContextOptions
from oprag.pipeline.render import without_markers

__all__ = [
    "Form",
    "checksum",
    "has_blocks",
    "is_block",
    "numbered_blocks",
    "plain_blocks",
    "source_name",
    "text_in",
]

Form = Literal["text", "search_result"]

_UNKNOWN = "unknown"  # a block must have a source and a title


def source_name(source: str | None) -> str:
    """The source of a block, as a citation repeats it."""
    return source if source and not source.isspace() else _UNKNOWN


def numbered_blocks(parts: Iterable[Part], sources: Mapping[int, str | None]) -> list[dict[str, Any]]:
    """The blocks of a result, with the sources of its numbers."""
    return [
        _block(f"[{one.number}] {without_markers(one.head)}".rstrip(), sources[one.number], without_markers(one.text))
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


def checksum(content: str | list[Any]) -> int:
    """A number for what a model reads of a result; of at most 53 bits, since JSON readers may round larger ones."""
    text = content if isinstance(content, str) else json.dumps([*map(_texts, content)], ensure_ascii=False)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest())


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
