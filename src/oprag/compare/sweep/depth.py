"""How many candidates a sweep looks at, so that the budget decides how many chunks are kept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from oprag.compare.analysis.settings import HasValues
from oprag.compare.data.data_set import whole_text
from oprag.compare.providers.names import LOCAL
from oprag.index.splitting import Split, pieces_of
from oprag.tokens import TokenCounter, count

__all__ = ["candidates", "limit_of"]

_SPARE = 1.5
_SAMPLE = 200_000  # characters; about a quarter of a second
_SLICE, _CHUNKS, _LONG = 10_000, 20, 8
"""Characters of a slice at least, chunks in it, and characters of a token or a word: its last chunk is a short one."""


def candidates(
    documents: Mapping[str, str | Sequence[str]], split: Split, count_tokens: TokenCounter, budget: int
) -> int:
    """How many of the best-ranked chunks fill a budget, with half as many to spare.

    A chunk of so many tokens of the embedder may have a quarter of them in the reader's unit, as in a table of
    numbers, and a splitter that keeps paragraphs gives chunks that are far below their size. So a sample of the
    documents is split, and the best-ranked chunks are taken to be like the shorter half of these.

    Args:
        documents: The documents.
        split: How they are split. The tokens of a chunk are counted by the packaged tokenizer, whatever the embedder.
        count_tokens: Counts the tokens of a context, in the reader's unit.
        budget: The largest budget, in this unit.

    Raises:
        OptionError: The splitter has an option that cannot be.
        MissingExtraError: The splitter or the packaged tokenizer is not installed.
        TokenizerError: `count_tokens` gave no usable count.
    """
    from oprag.compare.providers.names import tokenizer_of

    split = split.complete()
    tokenizer = tokenizer_of(LOCAL).tokenizer
    pieces = pieces_of(dict(_sample(documents, split.size or 1)), tokenizer, split)
    lengths = sorted(count(window.text, count_tokens) for window, _ in pieces)
    shorter = lengths[: (len(lengths) + 1) // 2]
    mean = sum(shorter) / len(shorter) if shorter else 0
    return max(1, round(_SPARE * budget / max(mean, 1)))


def limit_of(setting: HasValues) -> int | None:
    """How many of the best-ranked chunks a setting keeps at most, whatever its budget; None without a limit."""
    limits = [setting.values[name] for name in ("k", "max_candidates") if setting.values[name] is not None]
    return min(limits, default=None)


def _sample(documents: Mapping[str, str | Sequence[str]], size: int) -> Iterator[tuple[str, str]]:
    """Slices of the documents, until there are enough characters: always the same ones, so that a sweep can go on."""
    length = max(_SLICE, _CHUNKS * _LONG * size)
    texts = [whole_text(document) for document in documents.values()]
    places = [(number, start) for number, text in enumerate(texts) for start in range(0, len(text), length)]
    random.Random(0).shuffle(places)
    taken = 0
    for number, start in places:
        if taken >= _SAMPLE:
            break
        part = texts[number][start : start + length]
        taken += len(part)
        yield f"{number}:{start}", part
