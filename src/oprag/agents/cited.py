"""The citations in an answer: by markers such as [1], and those that a provider attached to it.

A citation of a provider repeats source, title and text of the `search_result` block that is cited, so it is resolved by
these, however the prompt was changed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oprag._internal.masking import describe
from oprag.agents.search_result_blocks import source_name
from oprag.chunk import Passage
from oprag.errors import OptionError
from oprag.methods.answer import part
from oprag.methods.citations import Citation, citation_of, cited_in, is_quoted, normal
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["Cited", "cited_by"]

_NUMBER = re.compile(r"\[(\d{1,6})\]")


class Cited(NamedTuple):
    """The citations in an answer.

    Attributes:
        text: The text of the answer.
        citations: One for each number in each marker, and for each citation that the provider of the model attached;
            with passage, source and span.
        unknown: What is cited without having been shown to the model: the numbers in markers, and the titles (or
            sources) in citations of the provider.
    """

    text: str
    citations: tuple[Citation, ...]
    unknown: tuple[int | str, ...]

    @property
    def misquoted(self) -> tuple[Citation, ...]:
        """The citations whose quote is not in the passage."""
        return tuple(citation for citation in self.citations if citation.misquoted)


class _Attached(NamedTuple):
    """A citation that the provider of a model attached to an answer."""

    start: int  # of the text that cites, in the text of the answer
    end: int
    title: str | None  # of what is cited; it begins with the number
    source: str | None  # a name or URL
    text: str | None


def cited_by(answer: Any, passage_shown: Callable[[int], Passage | None]) -> Cited:
    """Find the passages that an answer, as of `WorkingContext.cited`, cites among those that were shown."""
    text, attached = _read(answer)
    citations, numbers = cited_in(text, passage_shown)
    unknown: list[int | str] = [*numbers]
    for one in attached:
        number = _NUMBER.match(one.title or "")
        passage = passage_shown(int(number[1])) if number else None
        if number is None or passage is None or one.source != source_name(passage.source):
            unknown.append(one.title or one.source or "")
            continue
        misquoted = one.text is not None and not is_quoted(one.text, normal(passage.text))
        citations.append(citation_of(int(number[1]), one.start, one.end, passage, one.text, misquoted=misquoted))
    citations.sort(key=lambda citation: citation.start)
    return Cited(text, tuple(citations), tuple(dict.fromkeys(unknown)))


def _read(answer: Any) -> tuple[str, list[_Attached]]:
    """The text of an answer and the citations in its blocks, of LangChain, LlamaIndex or Anthropic's client."""
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
    citations: list[_Attached] = []
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
            citations.append(_Attached(start, end, *map(_text, (part(block, "title"), part(block, "source"), cited))))
    return between.join(texts), citations


def _citations(block: Any, start: int, end: int) -> Iterator[_Attached]:
    """The citations of a block of text: those of Anthropic, or the annotations to which LangChain converts them."""
    for one in (*_listed(block, "citations"), *_listed(block, "annotations")):
        extras = part(one, "extras")
        extras = extras if isinstance(extras, Mapping) else {}
        if extras.keys() == {METADATA_KEY}:
            # Ours, made from a marker in the text.
            continue
        first, last = part(one, "start_index"), part(one, "end_index")
        inside = type(first) is int and type(last) is int and 0 <= first <= last <= end - start
        yield _Attached(
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
