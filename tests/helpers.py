"""What several test files use."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag import Chunk

# fmt: off
WORDS = [
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "kiosk", "ledge", "marsh",
    "north", "ocean", "pearl", "quarry", "ridge", "stone", "tower", "umber", "valley", "willow", "xenon", "yarrow",
]
# fmt: on


def hit(text: str, rank: int, **metadata: Any) -> Chunk:
    """A retrieved chunk of the source "book", or of another one."""
    return Chunk(text, rank, metadata={"source": "book", **metadata})


def texts(chunks: Iterable[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def ranks(chunks: Iterable[Chunk]) -> list[int]:
    return [chunk.rank for chunk in chunks]


def count_words(text: str) -> int:
    """A token counter: one token a word."""
    return len(text.split())


def prose(words: int, seed: int = 0) -> str:
    """Sentences of made-up words; each word has its number, so that no two places read the same."""
    generator = random.Random(seed)
    parts: list[str] = []
    for number in range(words):
        parts.append(f"{generator.choice(WORDS)}{number}")
        if generator.random() < 0.1:
            parts[-1] += generator.choice([".", "?", ".\n\n"])
    return " ".join(parts)


def with_answers(answers: Mapping[int, str]) -> tuple[str, list[str]]:
    """A text in which "Yes, sir." occurs 900 times, and its chunks in sequence.

    Most chunks are a question with its answer. Where other answers are given, each of their sentences is a chunk.
    """
    parts = [f"Part {number} asks. {answers.get(number, 'Yes, sir.')}" for number in range(900)]
    pieces = [re.findall(r"[^.]+\.", part) if number in answers else [part] for number, part in enumerate(parts)]
    return " ".join(parts), [piece.strip() for some in pieces for piece in some]


def cut(text: str, spans: Sequence[tuple[int, int]], **metadata: Any) -> list[Chunk]:
    """Chunks of a text with true offsets, ranked in the given sequence."""
    return [
        hit(text[start:end], rank, start_index=start, end_index=end, **metadata)
        for rank, (start, end) in enumerate(spans)
    ]


def run_python(code: str, **environment: str) -> str:
    """What a program prints in a process of its own, with warnings as errors."""
    # On Python 3.14, LangSmith calls it.
    deprecated = "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-W", deprecated, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def shown_after_import(package: str) -> dict[str, Any]:
    """What Python shows of the classes of a package with options, where none of them has been used before."""
    return json.loads(run_python(_SHOW.format(package=package)))  # type: ignore[no-any-return]


_SHOW = """
import importlib, inspect, json, pydoc
package = importlib.import_module("{package}")
shown = {{}}
for name in package.__all__:
    cls = getattr(package, name)
    if hasattr(cls, "model_fields"):
        parameters = inspect.signature(cls).parameters.values()
        shown[name] = {{
            "parameters": {{one.name: one.kind.name for one in parameters}},
            "required": [one.name for one in parameters if one.default is one.empty],
            "help": pydoc.render_doc(cls, renderer=pydoc.plaintext).partition("Method resolution order")[0],
        }}
print(json.dumps(shown))
"""


def declared_descriptions(kind: type[Any]) -> dict[str, str]:
    """What a dataclass of options says about each of them, as surfaces show it."""
    return {
        field.name: field.metadata["help"]
        + (f" Or a function that {field.metadata['function']}." if field.metadata["function"] else "")
        for field in dataclasses.fields(kind)
    }


class WordEmbedder:
    """The sum of one fixed random vector for each word: texts with the same words are near each other."""

    def __init__(self, dimension: int = 32, name: str = "words") -> None:
        self.name = name
        self.dimension = dimension
        self.embedded: list[str] = []

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(texts):
            for word in text.lower().split():
                generator = np.random.default_rng(zlib.crc32(word.encode("utf-8", "surrogatepass")))
                vectors[number] += generator.standard_normal(self.dimension)
        return vectors


def word_offsets(text: str) -> list[tuple[int, int]]:
    """A tokenizer function: one token a word."""
    offsets: list[tuple[int, int]] = []
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        offsets.append((start, end))
    return offsets
