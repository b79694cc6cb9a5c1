"""Tokens that the model reads in a run of an agent, repeated tokens, and checks that no text is lost."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from benchmarks.agent_runs import (
    ARMS,
    COMPACT,
    DELTA,
    DIFFERENT,
    KINDS,
    PLAIN,
    REFORMULATED,
    SEARCHES,
    TUTORIAL,
    AgentRun,
    Arm,
    Place,
    Store,
    queries_of_runs,
)
from benchmarks.agent_texts import Piece, numbered_documents, pieces_of, repeated, shown_as, union
from benchmarks.data_sets import read_set
from benchmarks.langchain_embeddings import LocalEmbeddings
from benchmarks.result import Figure, Result, Table
from oprag import Chunk, Context, LocalEmbedder, approximate_tokens, build_context
from oprag.errors import PositionWarning
from oprag.langchain import OrderPreservingRetriever, working_context_of

__all__ = ["RUNS", "SETS", "tokens"]

SETS = ("qmsum", "chroma_spans", "fairytaleqa_books", "kg_rag_sec10q")
RUNS = 60
KS = (8, 16)
OFFSETS, NOTHING = "`add_start_index=True`", "without offsets"
ONE, TWO = "one search per step", "two parallel searches per step"
CACHED = 0.1  # of the price of input
OURS = (DELTA, COMPACT)

ABOUT = (
    f"A run is an agent of `create_agent` with a scripted model that searches {SEARCHES} times; {{runs}} runs of each "
    "kind on each set, k = 8 and 16. It asks four different questions about one document, or one question in four "
    "forms. All documents of a set are in one `InMemoryVectorStore` with the packaged static embedder, as chunks of "
    "1,000 characters with an overlap of 200. Compared are LangChain's `create_retriever_tool`, the tool of its "
    "tutorial (`Source: {{metadata}}`, `Content: {{text}}`), and `create_search_tool` with "
    "`OrderPreservingMiddleware` in the layouts `delta` and `compact`. Tokens are UTF-8 bytes divided by 4."
)


class Case(NamedTuple):
    """The runs of one kind."""

    data: str
    kind: str
    k: int
    splitting: str
    steps: str


@dataclass
class Sums:
    """Sums over the runs of one case, by arm."""

    results: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    cached: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    inverted: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    inverted_inside: Counter[str] = field(default_factory=Counter)
    pairs_inside: Counter[str] = field(default_factory=Counter)
    later: int = 0
    shown_before: int = 0
    runs: int = 0

    def add(self, other: Sums) -> None:
        """Add the sums of other runs."""
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)


@dataclass
class Checks:
    """The number of times each check of a layout was made, and how often it failed."""

    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def check(self, what: str, layout: str, where: str, *, right: bool, details: str = "") -> None:
        """Record the outcome of a check."""
        self.made[what, layout] += 1
        if not right:
            self.failed[what, layout] += 1
            print(f"FAILED {what}, {layout}: {where} {details}", file=sys.stderr, flush=True)


REPEATED = "repeated source characters in the last request, with offsets"
AGAIN = "runs with a chunk whose text is shown twice"
PREFIX = "requests that start with the whole previous request, byte for byte"
WHOLE = "runs whose final context equals `build_context` over all retrieved chunks"
READ = "runs in which the model read exactly the text of this context"
LOST = "runs in which the model was shown all retrieved text"
INVERTED = "inverted pairs within search results"
NUMBERS = "runs in which each number labels text of its document"


def tokens(data: Path, sets: Sequence[str], runs: int) -> Result:
    """Run agents over these sets, count the tokens that the model reads, and check the text."""
    embeddings = LocalEmbeddings(LocalEmbedder())
    sums: dict[Case, Sums] = {}
    checks = Checks()
    with warnings.catch_warnings():
        # In one of the cases, only the order of the store is known.
        warnings.simplefilter("ignore", PositionWarning)
        for name, splitting in product(sets, (OFFSETS, NOTHING)):
            read = read_set(data / name)
            store = Store(read.texts, embeddings, add_start_index=splitting == OFFSETS)
            for kind in KINDS:
                queries = queries_of_runs(read, store, kind, runs)
                for k, steps in product(KS, (ONE, TWO)):
                    case = Case(name, kind, k, splitting, steps)
                    print(f"{', '.join(map(str, case))} …", file=sys.stderr, flush=True)
                    sums[case] = _count(case, store, queries, checks)
    return Result(
        "Tokens",
        ABOUT.format(runs=runs),
        _figures(checks),
        [_checks(sums, checks), *_tables(sums, sets), _orders(sums)],
        _notes(sums),
    )


def _count(case: Case, store: Store, queries: Sequence[Sequence[str]], checks: Checks) -> Sums:
    arms = [Arm(name, store, case.k) for name in ARMS]
    # Like a search tool, it also places chunks that are the only ones found of their source.
    retriever = OrderPreservingRetriever(vectorstore=store.vectors, k=case.k)._for_many_searches()
    sums = Sums(runs=len(queries))
    for number, asked in enumerate(queries):
        where = f"{', '.join(map(str, case))}, run {number}"
        found = [[str(document.id) for document in store.found(query, case.k)] for query in asked]
        seen = set(found[0])
        for ids in found[1:]:
            sums.later += len(ids)
            sums.shown_before += sum(one in seen for one in ids)
            seen.update(ids)
        size = 1 if case.steps == ONE else 2
        steps = [asked[at : at + size] for at in range(0, len(asked), size)]
        offsets, expected = case.splitting == OFFSETS, None
        for arm in arms:
            run = arm.run(steps)
            shown = _shown(arm.name, run, found, store, where, checks)
            _add_tokens(sums, arm.name, run)
            _add_places(sums, arm.name, shown, store)
            if arm.name in OURS:
                expected = expected or build_context(_all_found(retriever, asked, store, offsets=offsets))
                _check(arm.name, run, shown, seen, store, where, checks, offsets=offsets)
                _check_context(arm.name, run, shown, expected, where, checks)
    return sums


def _shown(
    name: str, run: AgentRun, found: Sequence[Sequence[str]], store: Store, where: str, checks: Checks
) -> list[list[Piece]]:
    """The pieces of the sources in each search result of the last request."""
    results = run.requests[-1].results
    if name in OURS:
        try:
            pieces = pieces_of(results, numbered_documents(results), store.places)
        except ValueError as error:
            checks.check(NUMBERS, name, where, right=False, details=str(error))
            return []
        checks.check(NUMBERS, name, where, right=True)
        return pieces
    texts = [[store.vectors.store[one]["text"] for one in ids] for ids in found]
    for message, inside in zip(results, texts, strict=True):
        at = 0
        for text in inside:
            at = str(message.content).index(text, at) + len(text)
    return [[Piece(one, store.places[one], "") for one in ids] for ids in found]


def _add_tokens(sums: Sums, name: str, run: AgentRun) -> None:
    sums.results[name] += sum(approximate_tokens(str(message.content)) for message in run.requests[-1].results)
    before = ""
    for request in run.requests:
        sums.sent[name] += approximate_tokens(request.text)
        sums.cached[name] += approximate_tokens(request.text[: _common(before, request.text)])
        before = request.text


def _common(text: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _add_places(sums: Sums, name: str, shown: Sequence[Sequence[Piece]], store: Store) -> None:
    sums.repeated[name] += repeated([piece.place for result in shown for piece in result])
    # Where a chunk starts, even if its overlap is not shown.
    starts = [[store.places[piece.document] for piece in result] for result in shown]
    for result in starts:
        inverted, pairs = _inverted(result)
        sums.inverted_inside[name] += inverted
        sums.pairs_inside[name] += pairs
    inverted, pairs = _inverted(place for result in starts for place in result)
    sums.inverted[name] += inverted
    sums.pairs[name] += pairs


def _inverted(places: Iterable[Place]) -> tuple[int, int]:
    """The number of pairs of chunks of one source in the wrong order, and of all pairs."""
    pairs = [
        (one.start, other.start)
        for one, other in combinations(places, 2)
        if one.source == other.source and one.start != other.start
    ]
    return sum(one > other for one, other in pairs), len(pairs)


def _check(
    name: str,
    run: AgentRun,
    shown: Sequence[Sequence[Piece]],
    found: Iterable[str],
    store: Store,
    where: str,
    checks: Checks,
    *,
    offsets: bool,
) -> None:
    if offsets and name == COMPACT:
        again = repeated([piece.place for result in shown for piece in result])
        checks.check(REPEATED, name, where, right=not again, details=f"{again} characters")
    wrong = [
        pair for pair in map(_inverted, ([store.places[p.document] for p in result] for result in shown)) if pair[0]
    ]
    checks.check(INVERTED, name, where, right=not wrong, details=str(wrong))
    lost = _lost(store, (store.places[one] for one in found), (piece.place for result in shown for piece in result))
    checks.check(LOST, name, where, right=not lost, details=repr(lost[:200]))
    if name == DELTA:
        documents = Counter(document for result in shown for document in {piece.document for piece in result})
        again = sum(times - 1 for times in documents.values())
        checks.check(AGAIN, name, where, right=not again, details=f"{again} chunks")
        for before, request in zip(run.requests, run.requests[1:], strict=False):
            checks.check(PREFIX, name, where, right=request.text.startswith(before.text))


def _lost(store: Store, found: Iterable[Place], shown: Iterable[Place]) -> str:
    """The retrieved characters that were not shown."""
    read = union(shown)
    parts: list[str] = []
    for source, spans in union(found).items():
        for start, end in spans:
            at = start
            for begin, stop in read.get(source, []):
                if stop > at and begin < end:
                    parts.append(store.texts[source][at : max(at, begin)])
                    at = max(at, stop)
            parts.append(store.texts[source][at:end])
    return "".join(parts).strip()


def _check_context(
    name: str,
    run: AgentRun,
    shown: Sequence[Sequence[Piece]],
    expected: Context,
    where: str,
    checks: Checks,
) -> None:
    """Compare the gathered and the shown text with the context of all retrieved chunks."""
    text = shown_as(expected.text)
    context = working_context_of(run.state).context()
    same = context.text == expected.text and _identity(context) == _identity(expected)
    checks.check(WHOLE, name, where, right=same, details=_difference(context.text, expected.text))
    if name == COMPACT:
        # The numbers between the passages are not part of the context.
        last = "".join("".join(piece.text.split()) for piece in shown[-1]) if shown else ""
        checks.check(READ, name, where, right=last == text, details=_difference(last, text))


def _all_found(
    retriever: OrderPreservingRetriever, queries: Sequence[str], store: Store, *, offsets: bool
) -> list[Chunk]:
    """The chunks of all searches, each once, by their best rank, and then in the order of the searches."""
    best: dict[str, tuple[int, Chunk]] = {}
    for query in queries:
        # Without offsets, only the retriever knows the order of the store.
        context = retriever.get_context(query)
        chunks: Iterable[Chunk] = context.kept
        if offsets:
            documents = store.found(query, retriever.k or 0)
            raw = [
                Chunk(document.page_content, rank, metadata=document.metadata, id=document.id)
                for rank, document in enumerate(documents)
            ]
            chunks = build_context(raw).kept
        for chunk in chunks:
            key = str(chunk.id)
            rank, before = best.get(key, (chunk.rank, chunk))
            best[key] = min(rank, chunk.rank), before
    ranked = sorted(best.values(), key=lambda one: one[0])
    return [
        Chunk(
            chunk.text,
            rank,
            chunk.source,
            chunk.metadata,
            id=chunk.id,
            place=chunk.place,
        )
        for rank, (_, chunk) in enumerate(ranked)
    ]


def _identity(context: Context) -> list[tuple[str | None, str, str | None]]:
    return [(chunk.source, chunk.text, chunk.id) for chunk in context.kept]


def _difference(text: str, expected: str) -> str:
    """Describe where two texts start to differ."""
    at = _common(text, expected)
    return f"from {at}: {text[at : at + 80]!r}, expected {expected[at : at + 80]!r}"


def _figures(checks: Checks) -> list[Figure]:
    return [
        Figure(f"{what}, {layout}", "no failure", f"{checks.failed[what, layout]:,} of {made:,} failed", reached=False)
        for (what, layout), made in checks.made.items()
        if checks.failed[what, layout]
    ]


def _checks(sums: dict[Case, Sums], checks: Checks) -> Table:
    def cell(what: str, layout: str) -> str:
        made, failed = checks.made[what, layout], checks.failed[what, layout]
        if not made:
            return "–"
        if what == REPEATED:
            return f"{_sum(sums, splitting=OFFSETS).repeated[layout]:,}"
        if what == INVERTED:
            whole = _sum(sums)
            return f"{whole.inverted_inside[layout]:,} of {whole.pairs_inside[layout]:,}"
        return f"{failed if what == AGAIN else made - failed:,} of {made:,}"

    return Table(
        "All runs, with and without offsets:",
        ["check", DELTA, COMPACT],
        [[what, *(cell(what, layout) for layout in OURS)] for what in dict.fromkeys(what for what, _ in checks.made)],
    )


def _tables(sums: dict[Case, Sums], sets: Sequence[str]) -> Iterator[Table]:
    """Yield the tables: the results of each set, and the input of all sets, with offsets."""
    usual = [
        ([name, kind], _sum(sums, data=name, kind=kind, k=KS[0], splitting=OFFSETS, steps=ONE))
        for name, kind in product(sets, KINDS)
    ]
    others = [
        ([steps, kind], _sum(sums, kind=kind, k=KS[0], splitting=OFFSETS, steps=steps))
        for steps, kind in product((ONE, TWO), KINDS)
    ]
    yield Table(
        f"**Search results in the last request** ({OFFSETS}, {ONE}, k = {KS[0]}): chunks of later searches that "
        "earlier ones had found; tokens of the retriever tool; those of the others relative to it:",
        ["set", "searches", "found before", PLAIN, TUTORIAL, DELTA, COMPACT],
        [[*names, *_result_cells(one)] for names, one in usual],
    )
    yield Table(
        f"**Input of all model calls of a run** (all sets, {OFFSETS}, k = {KS[0]}): tokens of the retriever tool, and "
        "of the others relative to it; the share that equals the start of the previous request, which a prompt cache "
        f"can serve; the cost relative to the retriever tool if cached input costs {CACHED:g} times as much:",
        [
            "steps",
            "searches",
            PLAIN,
            TUTORIAL,
            DELTA,
            COMPACT,
            *(f"cached, {name}" for name in (PLAIN, DELTA, COMPACT)),
            *(f"cost, {name}" for name in (TUTORIAL, DELTA, COMPACT)),
        ],
        [[*names, *_input_cells(one)] for names, one in others],
    )


def _sum(sums: dict[Case, Sums], **wanted: object) -> Sums:
    whole = Sums()
    for case, one in sums.items():
        if all(getattr(case, name) == value for name, value in wanted.items()):
            whole.add(one)
    return whole


def _result_cells(one: Sums) -> list[str]:
    plain = one.results[PLAIN]
    return [
        _found_before(one),
        f"{plain / one.runs:,.0f}",
        *(f"{one.results[name] / plain:.2f}" for name in (TUTORIAL, DELTA, COMPACT)),
    ]


def _input_cells(one: Sums) -> list[str]:
    sent = one.sent
    return [
        f"{sent[PLAIN] / one.runs:,.0f}",
        *(f"{sent[name] / sent[PLAIN]:.2f}" for name in (TUTORIAL, DELTA, COMPACT)),
        *(f"{100 * one.cached[name] / sent[name]:.0f} %" for name in (PLAIN, DELTA, COMPACT)),
        *(f"{_cost(one, name) / _cost(one, PLAIN):.2f}" for name in (TUTORIAL, DELTA, COMPACT)),
    ]


def _cost(one: Sums, name: str) -> float:
    return one.sent[name] - (1 - CACHED) * one.cached[name]


def _orders(sums: dict[Case, Sums]) -> Table:
    one = _sum(sums, splitting=OFFSETS)
    rows = [
        [
            name,
            _share(one.inverted_inside[name], one.pairs_inside[name]),
            _share(one.inverted[name], one.pairs[name]),
            _share(one.repeated[name] // 4, one.results[name]),
        ]
        for name in ARMS
    ]
    return Table(
        f"**Order and repeats in the last request** ({OFFSETS}, all runs): pairs of chunks of one source in the wrong "
        "order, within each search result and over all; tokens that repeat source text:",
        ["tool", "inverted within a result", "inverted over all results", "repeated tokens"],
        rows,
    )


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)" if whole else "–"


def _notes(sums: dict[Case, Sums]) -> list[str]:
    different, reformulated = (_sum(sums, kind=kind) for kind in (DIFFERENT, REFORMULATED))
    return [
        (
            f"Of the chunks of later searches, earlier ones had found {_found_before(different)} for different "
            f"questions and {_found_before(reformulated)} for one question in four forms. `delta` leaves what was sent "
            "before unchanged, so it keeps document order within each result only; `compact` rewrites it, so a prompt "
            "cache serves less of its input."
        ),
    ]


def _found_before(one: Sums) -> str:
    return f"{100 * one.shown_before / one.later:.0f} %"
