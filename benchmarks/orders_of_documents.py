"""Whether contexts are in the order of the text, and whether oprag says so if not, over real documents and pipelines.

A setting is a document, a reader with a splitter, a store, a way of asking and a history of the store. Vectors are
random, so the rank of a chunk says nothing about its place. The true order comes from the text that was loaded, not
from oprag (`benchmarks.order_settings_truth`).

`--page` writes docs/benchmarks/orders_of_documents.md, a summary; the rows of all settings are printed.

Needs the packages of `tests/integration/requirements.txt`, and `beautifulsoup4`, `docx2txt`, `ebooklib`, `html2text`,
`llama-index-readers-file` and `llama-index-readers-json`. PDF and HTML files are those of Debian's packages bash-doc,
bzip2-doc, git-doc, libtasn1-doc and valgrind. A setting whose package or document is missing is skipped with a note.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
import uuid
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, chdir
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from benchmarks.machine import machine
from benchmarks.order_settings_documents import Material, MissingError
from benchmarks.order_settings_histories import HISTORIES, Filling, Handed
from benchmarks.order_settings_langchain import LangChainFilling
from benchmarks.order_settings_llama_index import LlamaIndexFilling
from benchmarks.order_settings_truth import Verdict
from benchmarks.result import Result, Table, markdown
from oprag._internal.warn import forget
from oprag.errors import PositionWarning, RetrievalWarning, SourceWarning
from tests.integration.stores.place import Place, serve_postgres

FOLDER = Path("/usr/share/doc")
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "orders_of_documents.md"
QUESTIONS = 40
KS = (4, 8, 16, 32, 64)
WARNINGS = (PositionWarning, SourceWarning, RetrievalWarning)
MIN_KNOWN = 0.95
SETTINGS = Path(__file__).with_name("order_settings.txt")
PACKAGES = ("oprag", "langchain-core", "langchain-community", "langchain-text-splitters", "llama-index-core", "pypdf")


@dataclass
class Row:
    """What a setting showed. Contexts are counted; `pairs` and `inverted` are those of contexts not in text order."""

    name: str
    chunks: int
    known: float  # share of the chunks whose true place is known
    in_order: int = 0
    warned: int = 0  # in text order, with a warning or doubt
    said: int = 0  # not in text order, with a warning or doubt
    said_before: int = 0  # not in text order, and an earlier warning of the setting covers the sources
    silent: int = 0  # not in text order, with neither
    torn: int = 0  # the chunks of a source are not together
    pairs: int = 0
    inverted: int = 0
    certainty: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def lies(self) -> bool:
        """Whether offsets are wrong, and there is neither a store nor a text to check them."""
        return "start_index|-|list" in self.name

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        share = f"{100 * self.inverted / self.pairs:.0f} %" if self.pairs else "–"
        sure = ", ".join(f"{number} {name}" for name, number in sorted(self.certainty.items())) or "–"
        counts = (self.in_order, self.warned, self.said, self.said_before, self.silent, self.torn)
        return [self.name.replace("|", " / "), *map(str, counts), share, sure]


HEAD = ("setting", "in order", "warned", "wrong, said", "said before", "**silent**", "torn", "inverted", "certainty")


def measure(setting: str, material: Material, place: Place) -> Row:
    """Fill the store of a setting and ask its questions, as in a fresh process."""
    forget()
    started = time.perf_counter()
    row = setting.split("|")
    # The same ids in every run: some stores list chunks by id.
    chance = random.Random(zlib.crc32(setting.encode()))
    with patch("uuid.uuid4", lambda: uuid.UUID(int=chance.getrandbits(128), version=4)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filling: Filling = (LlamaIndexFilling if row[0] == "LlamaIndex" else LangChainFilling)(row, material, place)
            for source in filling.sources:
                HISTORIES[row[-1]](filling, source)
        truth = filling.truth
        assert truth.share >= MIN_KNOWN, f"the true place of only {truth.share:.0%} of the chunks is known"
        found = Row(setting, len(truth.spots), truth.share)
        for number in range(QUESTIONS):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                answer = filling.ask(f"question {number}", KS[number % len(KS)])
            messages = [str(one.message) for one in caught if issubclass(one.category, WARNINGS)]
            _count(found, truth.judge(answer.keys), answer, messages, filling.sources)
    found.seconds = time.perf_counter() - started
    return found


def _count(row: Row, verdict: Verdict, answer: Handed, messages: list[str], sources: Iterable[str]) -> None:
    row.messages += [message for message in messages if message not in row.messages]
    row.torn += verdict.torn
    if answer.certainty:
        row.certainty[answer.certainty + (", wrong" if verdict.wrong else "")] += 1
    if not verdict.wrong:
        row.in_order += 1
        row.warned += answer.doubted or bool(messages)
        return
    row.pairs += verdict.pairs
    row.inverted += verdict.inverted
    if answer.doubted or _covered(verdict.wrong, sources, messages):
        row.said += 1
    elif _covered(verdict.wrong, sources, row.messages):
        row.said_before += 1
    else:
        row.silent += 1


def _covered(wrong: Iterable[str], sources: Iterable[str], messages: Iterable[str]) -> bool:
    """Whether warnings name each of these sources, or one names an example or no source at all."""
    # Names are cut in front, and copies of files have no folder.
    named = {message: [name for name in sources if name.rpartition("/")[2][-12:] in message] for message in messages}
    general = any(not names or "such as" in message for message, names in named.items())
    return general or all(any(source in names for names in named.values()) for source in wrong)


def report(rows: Sequence[Row], missing: Sequence[str]) -> Result:
    """The tables."""
    result = Result(
        "Orders of documents",
        f"{QUESTIONS} questions per setting, k = {', '.join(map(str, KS))} in turn; numbers are contexts. In order: no "
        "two chunks of a source are inverted; chunks that do not compare (equal starts, two versions of a text, a text "
        "that occurs several times) are left out. Warned: in order, with a warning or doubt. Said: a warning or doubt "
        "of this question; said before: an earlier warning of the setting covers the source. Torn: the chunks of a "
        "source are not together. Inverted: share of the pairs, in contexts that are not in order.",
    )
    honest = [row for row in rows if not row.lies]
    result.tables.append(Table("Settings:", HEAD, [row.cells for row in honest]))
    if lying := [row.cells for row in rows if row.lies]:
        result.tables.append(Table("Offsets that lie, and nothing could check them:", HEAD, lying))
    silent = sum(row.silent for row in honest)
    result.notes.append(
        f"**{len(honest)} settings, {QUESTIONS * len(honest):,} questions: {sum(row.in_order for row in honest):,} in "
        f"order, {sum(row.said for row in honest)} wrong and said, {sum(row.said_before for row in honest)} wrong and "
        f"said before, {silent} wrong and silent, in {sum(row.silent > 0 for row in honest)} settings.**"
    )
    if missing:
        result.notes.append("\n".join(["Not measured:\n", *(f"- {note}" for note in missing)]))
    return result


def summary(rows: Sequence[Row]) -> Result:
    """The settings by the tool that filled the store, and by what happened to the store afterwards."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        tool, *_, history = row.name.split("|")
        tool = tool if tool in ("LangChain", "LlamaIndex") else "other tools' metadata"
        changed = "filled once" if history in ("clean", "stamped") else "changed afterwards"
        of_group = ("lying offsets, nothing to check them", "filled once") if row.lies else (tool, changed)
        groups.setdefault(of_group, []).append(row)
    lines = []
    for names, group in sorted(groups.items()):
        known_wrong = sum(row.certainty["known, wrong"] for row in group)
        numbers = [len(group), QUESTIONS * len(group), *(sum(getattr(row, name) for row in group) for name in _SUMMED)]
        lines.append([*names, *(f"{number:,}" for number in (*numbers, known_wrong))])
    return Result(
        "Orders of documents",
        f"Real documents (PDF, HTML, Word, CSV, JSON, Markdown, text) through the readers, splitters and stores that "
        f"users have, {QUESTIONS} questions per setting; the true order comes from the text that was loaded. In order: "
        "no two chunks of a source are inverted. Wrong and said: with a warning or a doubt; among them are stores "
        "that keep neither positions nor a sequence. Known and wrong: oprag said that the order is known.",
        tables=[
            Table(
                "Contexts:",
                ["store filled by", "store", "settings", "contexts", *_SUMMED.values(), "known and wrong"],
                lines,
            )
        ],
    )


_SUMMED = {
    "in_order": "in order",
    "warned": "of them with a warning",
    "said": "wrong and said",
    "said_before": "wrong, said before",
    "silent": "wrong and silent",
}


def run(folder: Path, only: str = "") -> tuple[list[Row], list[str]]:
    """Measure the settings whose names contain a text; return also notes on those that cannot run."""
    rows: list[Row] = []
    missing: list[str] = []
    settings = [line for line in SETTINGS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    # Paths are relative, since LlamaIndex splits and embeds them with the texts.
    with TemporaryDirectory() as temporary, chdir(temporary), ExitStack() as servers:
        postgres = cache(lambda: servers.enter_context(serve_postgres()))
        written = Path("documents")
        written.mkdir()
        material = Material(folder, written)
        for number, setting in enumerate(settings):
            if only not in setting:
                continue
            with ExitStack() as closing:
                name = f"setting_{number}"
                place = Place(name, Path(temporary, name), lambda driver: postgres()(driver), str, closing)  # noqa: PLW0108
                try:
                    rows.append(measure(setting, material, place))
                    note = f"{rows[-1].silent} silent, {rows[-1].seconds:.1f} s"
                except Exception as error:  # noqa: BLE001 - the others are measured
                    why = "skipped" if isinstance(error, MissingError | ImportError) else "failed"
                    note = f"{why}: {type(error).__name__}: {error}"
                    missing.append(f"{setting}: {note}")
                print(f"{setting}: {note}", file=sys.stderr, flush=True)
    return rows, missing


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders_of_documents", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help=f"the documents; default: {FOLDER}")
    parser.add_argument("--only", default="", metavar="NAME", help="only settings whose names contain this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write rows and messages to this file")
    parser.add_argument("--page", action="store_true", help=f"write the summary to {PAGE.name}")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    about_machine = machine(PACKAGES)
    rows, missing = run(options.folder.resolve(), options.only)
    if options.json is not None:
        # `asdict` would count the items of a counter.
        written = [{**asdict(replace(row, certainty=Counter())), "certainty": dict(row.certainty)} for row in rows]
        data: dict[str, Any] = {"machine": about_machine, "missing": missing, "rows": written}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.page:
        text = markdown(summary(rows)).replace("## ", "# ", 1)
        command = "Written by `python -m benchmarks.orders_of_documents --page`."
        PAGE.write_text(f"{text}\n\n{command} {about_machine}\n", encoding="utf-8")
    print(f"{markdown(report(rows, missing))}\n\n{about_machine}")


if __name__ == "__main__":
    main()
