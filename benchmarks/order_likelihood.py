"""The likelihood of gold answers after contexts that differ in order, number of chunks or continuity.

    python -m benchmarks.order_likelihood texts --data FOLDER --texts FILE.xz
    python -m benchmarks.likelihood MODEL FILE.xz SCORES
    python -m benchmarks.order_likelihood page --texts FILE.xz --scores SCORES --reader WORDS

The last command writes docs/benchmarks/order_likelihood.md. A model with a few hundred million weights is enough; the
second command needs hours on two cores, and minutes on an accelerator.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import rows_of
from benchmarks.result import Result, Table, markdown, p_value
from oprag import Chunk, ContextOptions, DocumentIndex, LocalEmbedder, build_context
from oprag.compare.stats import Difference, paired_difference
from oprag.options import Order

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "order_likelihood.md"
PACKAGES = ("oprag", "wordllama")
SEED = 1
SIZE = 128
ALPHA = 0.05
CANDIDATES = 4
"""Candidates for each kept chunk, where there is continuity."""


@dataclass(frozen=True)
class Setting:
    """How the context is built; without `k` there is none."""

    k: int | None = None
    order: Order = "source"
    seed: int = 0
    continuity: float = 0.0

    @property
    def varied(self) -> str:
        """The value that a table compares, in words."""
        if self.k is None:
            return "closed book"
        return f"continuity {self.continuity}" if self.continuity else self.order


@dataclass(frozen=True)
class Part:
    """Questions of one kind, and the compared settings; `sample` is the number of questions of each set.

    The baseline is source order without continuity; seeds of one random order are averaged.
    """

    title: str
    about: str
    sets: Mapping[str, str]
    settings: Sequence[Setting]
    sample: int | None = None


def _orders(ks: Sequence[int], seeds: Sequence[int]) -> list[Setting]:
    fixed = [Setting(k, order) for k in ks for order in ("source", "rank", "reverse_rank")]
    return [*fixed, *(Setting(k, "random", seed) for k in ks for seed in seeds), Setting()]


_MEETINGS = "Questions about meetings (QMSum, validation), whose gold answers are summaries of a few sentences."
_SHORT = "Questions about stories (FairytaleQA) and contracts (CUAD) with short gold answers."
PARTS = {
    "summaries": Part(
        "Summaries of meetings",
        _MEETINGS,
        {"meetings": "qmsum"},
        _orders((16, 32, 64), (1,)),
    ),
    "short": Part(
        "Short answers about stories and contracts",
        _SHORT,
        {"stories": "fairytaleqa_books", "contracts": "cuad_leval"},
        _orders((4, 8, 16, 32), (1, 2)),
        100,
    ),
    "continuity": Part(
        "Continuity",
        f"{_MEETINGS} {_SHORT} In source order; `continuity` chooses among four times as many chunks.",
        {"meetings": "qmsum", "stories": "fairytaleqa_books", "contracts": "cuad_leval"},
        [Setting(k, continuity=one) for k in (8, 16, 32) for one in (0.0, 0.3, 0.5)],
        600,
    ),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    texts, page = commands.add_parser("texts"), commands.add_parser("page")
    texts.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    page.add_argument("--scores", type=Path, required=True, help="what likelihood.py wrote")
    page.add_argument("--reader", required=True, help="the model and where it ran, in words")
    page.add_argument("--suffix", default="", help="added to the titles and markers of the parts, for another reader")
    page.add_argument("--page", type=Path, default=PAGE, help="page with markers for each part")
    for one in (texts, page):
        one.add_argument("--texts", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "texts":
        with lzma.open(options.texts, "wt", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row)}\n" for name in PARTS for row in _texts(name, options.data))
        return
    with lzma.open(options.texts, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    scores = [float(line) for line in options.scores.read_text().splitlines()]
    text = options.page.read_text(encoding="utf-8")
    for name, of_part in groupby(zip(rows, scores, strict=True), key=lambda pair: pair[0]["part"]):
        begin, end = (f"<!-- {mark} {name}{options.suffix} -->" for mark in ("begin", "end"))
        before, rest = text.split(begin)
        shown = [
            begin,
            markdown(_result(PARTS[name], list(of_part), options.reader, options.suffix)),
            f"Measured {datetime.now(UTC):%Y-%m-%d}, {', '.join(f'{one} {version(one)}' for one in PACKAGES)}.",
            end,
        ]
        text = before + "\n\n".join(shown) + rest.split(end)[1]
    options.page.write_text(text, encoding="utf-8")


def _texts(name: str, data: Path) -> Iterator[dict[str, Any]]:
    """The prompt of each question in each setting of a part."""
    part, local = PARTS[name], LocalEmbedder()
    for data_set, folder in part.sets.items():
        documents = {row["document_id"]: row["text"] for row in rows_of(data / folder / "documents.jsonl.gz")}
        asked = rows_of(data / folder / "questions.jsonl.gz")
        if part.sample is not None and part.sample < len(asked):
            asked = random.Random(SEED).sample(asked, part.sample)
        for document, group in groupby(
            sorted(asked, key=lambda row: row["document_id"]), lambda row: row["document_id"]
        ):
            questions = list(group)
            index = DocumentIndex.from_texts({document: documents[document]}, local, local.tokenizer, chunk_size=SIZE)
            most = CANDIDATES * max(one.k or 0 for one in part.settings)
            for row in questions:
                hits = index.search(row["question"], most)
                for setting in part.settings:
                    yield {
                        "part": name,
                        "set": data_set,
                        "document": document,
                        "question": row["id"],
                        "setting": asdict(setting),
                        "answers": [one for one in row["answers"] if one.strip()],
                        "prompt": _prompt(row, hits, setting),
                    }


def _prompt(row: Mapping[str, Any], hits: Sequence[Chunk], setting: Setting) -> str:
    if setting.k is None:
        return f"Question: {row['question']}\nAnswer:"
    options = ContextOptions(
        k=setting.k,
        max_candidates=(CANDIDATES if setting.continuity else 1) * setting.k,
        order=setting.order,
        seed=setting.seed,
        continuity=setting.continuity,
    )
    # A text to continue, since base models do not follow instructions.
    return f"{build_context(hits, options).text}\n\nQuestion: {row['question']}\nAnswer:"


def _asked(part: Part) -> str:
    return "" if part.sample is None else f" Of each set at most {part.sample} questions are asked (seed {SEED})."


def _result(part: Part, scored: Sequence[tuple[Mapping[str, Any], float]], reader: str, suffix: str = "") -> Result:
    sizes: list[str] = []
    closed: list[str] = []
    bases: dict[tuple[str, int], str] = {}
    differences: dict[tuple[str, int, str], Difference] = {}
    for name in part.sets:
        documents, found = _by_setting([pair for pair in scored if pair[0]["set"] == name])
        sizes.append(f"{len(documents)} questions in {len(set(documents))} documents of {name}")
        for setting, one in found.items():
            base = found.get(Setting(setting.k))
            if setting.k is None:
                closed.append(f"{name} {np.mean(one):.3f}")
            elif setting == Setting(setting.k):
                bases[name, setting.k] = f"{np.mean(one):.3f}"
            elif base is not None:
                differences[name, setting.k, setting.varied] = paired_difference(one, base, documents)
    corrected = _holm([one.p_value or 0.0 for one in differences.values()])
    cells = {
        key: f"{one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
        + (f", p = {p_value(value)}".replace("= <", "<") if value < ALPHA else "")
        for (key, one), value in zip(differences.items(), corrected, strict=True)
    }
    varied = list(dict.fromkeys(setting for _, _, setting in differences))
    without = f" Without a context: {', '.join(closed)}." if closed else ""
    return Result(
        part.title + suffix,
        f"{part.about}{_asked(part)} {'; '.join(sizes)}. Reader: {reader}.{without}",
        tables=[
            Table(
                "Nats per token:",
                ["set", "k", "source", *varied],
                [[name, str(k), base, *(cells[name, k, one] for one in varied)] for (name, k), base in bases.items()],
            )
        ],
    )


def _by_setting(
    scored: Sequence[tuple[Mapping[str, Any], float]],
) -> tuple[NDArray[np.int64], dict[Setting, NDArray[np.float64]]]:
    """The document of each question, and the likelihoods in each setting; those of several seeds are averaged."""
    questions = {row["question"]: row["document"] for row, _ in scored}
    places = {question: place for place, question in enumerate(questions)}
    names = list(dict.fromkeys(questions.values()))
    cells: dict[Setting, list[NDArray[np.float64]]] = {}
    seeds: dict[Setting, dict[Any, int]] = {}
    for row, likelihood in scored:
        given = Setting(**row["setting"])
        setting = Setting(given.k, given.order, continuity=given.continuity)
        seed = seeds.setdefault(setting, {}).setdefault(given.seed, len(seeds[setting]))
        values = cells.setdefault(setting, [])
        if seed == len(values):
            values.append(np.full(len(places), np.nan))
        values[seed][places[row["question"]]] = likelihood
    documents = np.array([names.index(document) for document in questions.values()])
    return documents, {setting: np.mean(values, axis=0) for setting, values in cells.items()}


def _holm(p_values: Sequence[float]) -> list[float]:
    """P-values by Holm's step-down correction (1979)."""
    corrected, highest = [0.0] * len(p_values), 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - done)))
        corrected[place] = highest
    return corrected


if __name__ == "__main__":
    main()
