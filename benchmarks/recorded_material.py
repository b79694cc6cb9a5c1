"""Material of the recorded experiments: documents, questions, and deterministic models."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import re
import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from benchmarks.data_sets import rows_of
from oprag.compare import DataSet, EmbedderSpec, Experiment, ModelSpec, read_data
from oprag.methods import Completion, Usage
from tests.pdfs import pdf

__all__ = [
    "MENDED",
    "Set",
    "chronicles",
    "experiment_of",
    "faulty",
    "lost",
    "mixed",
    "read_real",
    "reader",
    "shortened",
    "store",
    "words",
    "write_plain",
    "write_published",
]

Set = tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]
"""The text of each document, and questions in the fields of oprag's format."""

PLACES = ("Aldmere", "Varn", "Leith", "Corby", "Dunmore", "Esk", "Fenwick", "Garth", "Holm", "Inver", "Jarrow", "Kelso")
THINGS = ("lamp", "gate", "bridge", "ferry", "mill", "well")
NAMES = ("Mira", "Otto", "Runa", "Silas", "Tilda", "Ulf", "Vera", "Wim", "Ylva", "Zeno", "Anouk", "Bram", "Cleo")
FILLERS = (
    "The wind came from the {a} and the {b} was closed until noon.",
    "Nobody in {place} spoke of the {a} that winter, though the {b} had been mended twice.",
    "Three carts of {a} wood stood before the {b}, and the clerk counted them again.",
    "At the fair of {place} a {a} was sold for the price of a small {b}.",
    "The {a} of the old {b} is written of elsewhere in this book.",
)
FACT = re.compile(r"keeper of the (\w+) of (\w+) is (\w+)")
ASKED = re.compile(r"keepers? of the (\w+)(?: and the (\w+))? of (\w+)\?")
CHOICE = re.compile(r"^([A-Z])[.):] (.+)$", re.MULTILINE)
MENDED = "RECORDED_MENDED"
"""The environment variable that prevents failing calls."""
NEAR = 1_500
"""Number of characters that the reader sees at the start and at the end of a prompt."""


def chronicles(documents: int = len(PLACES), sentences: int = 40) -> Set:
    """Keepers of things in places: for each place two questions about one keeper, and one about two."""
    texts: dict[str, str] = {}
    questions: list[dict[str, Any]] = []
    for number, place in enumerate(PLACES[:documents]):
        chance = random.Random(place)
        parts = [
            chance.choice(FILLERS).format(a=chance.choice(THINGS), b=chance.choice(THINGS), place=chance.choice(PLACES))
            for _ in range(sentences)
        ]
        keepers = dict(zip(THINGS, chance.sample(NAMES, len(THINGS)), strict=True))
        facts = {thing: f"The keeper of the {thing} of {place} is {name}." for thing, name in keepers.items()}
        for fact in facts.values():
            parts.insert(chance.randrange(len(parts)), fact)
        texts[place] = " ".join(parts)
        for asked in ([THINGS[0]], [THINGS[number % 3 + 1]], [THINGS[4], THINGS[5]]):
            asked.sort(key=lambda thing: texts[place].index(facts[thing]))
            names = [keepers[thing] for thing in asked]
            starts = {thing: texts[place].index(facts[thing]) for thing in asked}
            questions.append(
                {
                    "id": f"{place}-{'-'.join(asked)}",
                    "question": f"Who {'are the keepers' if asked[1:] else 'is the keeper'} of the "
                    f"{' and the '.join(asked)} of {place}?",
                    "answers": [" and ".join(names), " ".join(facts[thing] for thing in asked)],
                    "document": place,
                    "evidence": [{"start": at, "end": at + len(facts[thing])} for thing, at in starts.items()],
                    "spread": len(asked) > 1,
                    "type": "two" if asked[1:] else "one",
                }
            )
    return texts, questions


def mixed() -> Set:
    """All kinds of questions: with choices, about several documents, without gold answers, repeated, other scripts."""
    texts, asked = chronicles(4)
    plain = [{name: value for name, value in one.items() if name != "id"} for one in asked]
    choices = [{"question": one["question"], "document": one["document"], "choices": _choices(one)} for one in asked]
    in_all = [{"document": one["document"], **span} for one in asked[:3] for span in one["evidence"]]
    questions: list[dict[str, Any]] = [
        {**choices[0], "id": "first letter", "right_choice": "A"},
        {**choices[3], "id": "by its text", "right_choice": plain[3]["answers"][0], "evidence": asked[3]["evidence"]},
        {**choices[6], "id": "wrong choice", "right_choice": 2},
        {**plain[0], "id": "in all", "document": "*", "evidence": in_all[:1]},
        {**plain[3], "id": "in two", "document": [*texts][:2], "evidence": [in_all[0], {**in_all[0], "start": 0}]},
        {**plain[6], "id": "twice 1", "note": 1},
        {**plain[6], "id": "twice 2", "note": 2},
        {"question": plain[7]["question"], "document": "Leith", "id": "no gold"},
        {"question": plain[8]["question"], "document": "Leith", "id": "no evidence", "answer": "Œuvre, ½ Straße"},
        {"question": "Wer hütet 日本 – und wo?", "document": "Leith", "id": "odd", "answers": ["=1+1", "-", "Mira"]},
    ]
    return {**texts, "Øya": "日本語のテキスト。 Œuvre d'une Straße – ½ naïve façade.\r\n" * 12}, questions


def write_plain(folder: Path, given: Set) -> dict[str, Any]:
    """Write a set in oprag's format, and return the data table that reads it."""
    texts, questions = given
    folder.mkdir(parents=True)
    _write_lines(folder / "documents.jsonl", [{"document": name, "text": text} for name, text in texts.items()])
    _write_lines(folder / "questions.jsonl", questions)
    return {"path": str(folder)}


def write_published(folder: Path, given: Set) -> dict[str, dict[str, Any]]:
    """Write a set in all published layouts, and return the data tables that read them."""
    folder.mkdir(parents=True)
    tables = {**_of_lines(folder, *given), **_of_folders(folder, *given)}
    return {name: {"format": name, **table} for name, table in tables.items()}


def _of_lines(folder: Path, texts: Mapping[str, str], asked: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Write the layouts with one question per line."""
    infinitebench = [
        {"id": number, "context": texts[one["document"]], "input": one["question"], "answer": one["answers"][:1]}
        | {"options": _choices(one) if number % 2 else []}
        for number, one in enumerate(asked)
    ]
    longbench = [
        {"_id": f"l{number}", "context": texts[one["document"]], "input": one["question"], "answers": one["answers"]}
        for number, one in enumerate(asked)
    ]
    medqa = [
        {"question": one["question"], "answer": one["answers"][0], "meta_info": "step1"}
        | {"options": dict(zip("ABCD", _choices(one), strict=True))}
        for one in asked
    ]
    quality: dict[str, dict[str, Any]] = {
        name: {"article_id": name, "set_unique_id": name, "article": text, "questions": []}
        for name, text in texts.items()
    }
    for one in asked:
        choices = _choices(one)
        label = choices.index(one["answers"][0]) + 1
        question = {"question": one["question"], "options": choices, "gold_label": label, "difficult": label % 2}
        quality[one["document"]]["questions"].append(question)
    return {
        "infinitebench": {"path": _write_lines(folder / "infinitebench.jsonl", infinitebench)},
        "longbench": {"path": _write_lines(folder / "longbench.jsonl", longbench)},
        "medqa": {
            "path": _write_lines(folder / "medqa.jsonl", medqa),
            "documents": _write_texts(folder / "textbooks", texts),
        },
        "quality": {"path": _write_lines(folder / "quality.jsonl", list(quality.values()))},
    }


def _of_folders(
    folder: Path, texts: Mapping[str, str], asked: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Write the layouts with documents as files."""
    meetings, stories, filings = (folder / name for name in ("qmsum", "narrativeqa", "kg_rag"))
    for one in (meetings, stories, filings):
        one.mkdir()
    for name, text in texts.items():
        queries = [{"query": one["question"], "answer": one["answers"][0]} for one in asked if one["document"] == name]
        spoken = enumerate(text.split(". "))
        meeting = {
            "meeting_transcripts": [{"speaker": f"Speaker {turn % 3}", "content": said} for turn, said in spoken],
            "general_query_list": queries[:1],
            "specific_query_list": [{**query, "relevant_text_span": [["0", "1"]]} for query in queries[1:]],
        }
        _write_lines(meetings / f"{name}.json", [meeting])
    listed = [("document_id", "set", "kind"), *((name, "test", "gutenberg") for name in texts)]
    _write_csv(stories / "documents.csv", listed)
    told = [(one["document"], "test", one["question"], one["answers"][0], one["answers"][-1]) for one in asked]
    _write_csv(stories / "qaps.csv", [("document_id", "set", "question", "answer1", "answer2"), *told])
    _write_texts(stories / "tmp", texts, ".content")
    rows = [(one["question"], f"*{one['document']}*", "Single-Doc", one["answers"][0]) for one in asked]
    _write_csv(filings / "qna.csv", [("Question", "Source Docs", "Question Type", "Answer"), *rows])
    first, *others = texts
    _write_texts(filings / "docs", {name: texts[name] for name in others})
    lines = re.findall(r".{1,90}(?:\s|$)", texts[first].encode("cp1252", "ignore").decode("cp1252"))
    (filings / "docs" / f"{first}.pdf").write_bytes(pdf("\n".join(lines[:50]), "\n".join(lines[50:100])))
    return {
        "qmsum": {"path": str(meetings)},
        "narrativeqa": {"path": str(stories)},
        "kg_rag": {"path": str(filings / "qna.csv")},
    }


def _choices(question: Mapping[str, Any]) -> list[str]:
    right = question["answers"][0]
    return list(question.get("choices") or [right, *(name for name in NAMES if name != right)][:4])


def _write_lines(path: Path, rows: Sequence[Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def _write_csv(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def _write_texts(folder: Path, texts: Mapping[str, str], ending: str = ".txt") -> str:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}{ending}").write_text(text, encoding="utf-8", newline="")
    return str(folder)


def reader(near: int = NEAR) -> Callable[[str], str]:
    """A model that finds keepers near both ends of a prompt, so that the order and length of a context matter."""
    return partial(_read, near)


def _read(near: int, prompt: str) -> str:
    digest = int(hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:8], 16)
    first, second, place = (ASKED.findall(prompt) or [("", "", "")])[-1]
    if "other questions about this text" in prompt:
        things = [first or THINGS[0], second or THINGS[digest % len(THINGS)], THINGS[digest % 5]]
        return "\n".join(f"Who is the keeper of the {thing} of {place or PLACES[0]}?" for thing in things)
    seen = (fact for fact in FACT.finditer(prompt) if min(fact.start(), len(prompt) - fact.end()) < near)
    found = dict.fromkeys(fact[0] for fact in seen if fact[2] == place and fact[1] in (first, second))
    if "letter of the right choice" in prompt:
        named = " and ".join(fact.rpartition(" ")[2] for fact in found)
        letters: dict[str, str] = {text.strip(): letter for letter, text in CHOICE.findall(prompt)}
        return letters.get(named, "ABCD"[digest % 4])
    reply = " ".join(f"The {fact}{' [1]' if '[1]' in prompt else ''}." for fact in found)
    if not reply:
        reply = "unanswerable" if '"unanswerable"' in prompt else f"Nobody knows {NAMES[digest % len(NAMES)]}"
    return f"{reply}\nConfidence: {digest % 101}" if "Confidence: <number>" in prompt else reply


def lost() -> Callable[[str], str]:
    """A reader that is lost in the middle of shorter prompts."""
    return reader(near=300)


def faulty() -> Callable[[str], Completion]:
    """The reader with calls that fail (unless RECORDED_MENDED is set), are truncated, or return nothing."""
    return _fail


def _fail(prompt: str) -> Completion:
    text, kind = reader()(prompt), zlib.crc32(prompt.encode()) % 8
    usage = Usage(len(prompt) // 4, len(text) // 4, cached_tokens=len(prompt) // 8)
    if kind == 0 and not os.environ.get(MENDED):
        raise ConnectionError(f"no reply to {len(prompt)} characters")
    if kind == 1:
        return Completion("", usage=usage, finish_reason="stop")
    if kind == 2:
        return Completion(text[:9], usage=usage, finish_reason="length")
    return Completion(text, usage=usage, finish_reason="stop")


class _Words(Embeddings):
    """Embeds texts with the same words close to each other."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.125] * 32
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 32] += 1
        return vector


def words() -> Embeddings:
    """An embedder of an experiment."""
    return _Words()


def experiment_of(path: Path) -> Experiment:
    """The experiment of a file, in which MODULE:FUNCTION is a function of this module."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    for part, kind in (("models", ModelSpec), ("embedders", EmbedderSpec)):
        for name, table in content.get(part, {}).items():
            content[part][name] = _spec(kind, name, table)
    content["score_embedder"] = _spec(EmbedderSpec, "", content.get("score_embedder", {"use": "local"}))
    content["stores"] = {name: _function(function) for name, function in content.get("stores", {}).items()}
    content["data"] = {name: _data_set(name, table) for name, table in content["data"].items()}
    return Experiment(**content)


def _spec(kind: Any, name: str, table: Mapping[str, Any]) -> Any:
    settings = {"name": name or None, **table}
    use, called = settings.pop("use"), settings.pop("name")
    made = _function(use)
    return kind(made() if callable(made) else use, called, **settings)


def _function(name: str) -> Any:
    return globals()[name.partition(":")[2]] if name.startswith("benchmarks.") else name


def _data_set(name: str, table: Mapping[str, Any]) -> DataSet:
    given = dict(table)
    sample, seed = given.pop("sample", None), given.pop("seed", 0)
    data = read_data(given.pop("path"), given.pop("format", "oprag"), name=name, **given)
    return data if sample is None else data.sample(sample, seed)


def store(embeddings: Embeddings) -> InMemoryVectorStore:
    """A store of an experiment."""
    return InMemoryVectorStore(embeddings)


def read_real(folder: Path, questions: int) -> Set:
    """Read a few questions of a set, spread over it, and their documents."""
    texts = {row["document_id"]: row["text"] for row in rows_of(folder / "documents.jsonl.gz")}
    asked = rows_of(folder / "questions.jsonl.gz")
    some = []
    for one in asked[:: max(1, len(asked) // questions)][:questions]:
        named = one["document_id"] if one["document_id"] in texts else one["source_documents"]
        known = {
            name: one[name] for name in ("id", "question", "answers", "choices", "evidence", "story") if one.get(name)
        }
        some.append({**known, "document": named})
    return texts, some


def shortened(given: Set, documents: int = 2, characters: int = 40_000) -> Set:
    """Return the start of a few documents and the questions about one of them, with all fields that layouts need."""
    texts, asked = given
    single = [one for one in asked if isinstance(one["document"], str)]
    kept = {one["document"]: texts[one["document"]][:characters] for one in single[:documents]}
    some = []
    for one in single:
        if one["document"] in kept:
            spans = [span for span in one.get("evidence", ()) if span["end"] <= characters]
            some.append({**one, "answers": one.get("answers") or NAMES[:1], "evidence": spans})
    return kept, some
