"""Tokens that the model reads in a run of an agent, repeated tokens, and checks that no text is lost."""

from __future__ import annotations

import sys
import warnings
from collections import Counter, defaultdict
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
    f"A run is an agent of `create_agent` with a scripted chat model that searches {SEARCHES} times and then answers; "
    "{runs} runs of each kind on each set, k = 8 and 16. A run asks four different questions about one document of the "
    "set, drawn at random, or one question in four forms, made without a model: the question; its keywords (without "
    "stop words); the half of the keywords that is in the fewest chunks; the keywords and the three words of the best "
    "chunk with the highest TF-IDF. All documents of a set are in one `InMemoryVectorStore` with the packaged static "
    "embedder, as chunks of `RecursiveCharacterTextSplitter` (1,000 characters, overlap 200) with the source as "
    "metadata, and with `add_start_index=True` also the offset. The four arms ask the same questions of the same "
    "store: LangChain's `create_retriever_tool` over the store's retriever; the tool of LangChain's tutorial "
    "(`Source: {{metadata}}`, `Content: {{text}}`); `create_search_tool` with `OrderPreservingMiddleware`, layout "
    "`delta`; the same with layout `compact`. Tokens are counted by `approximate_tokens`: UTF-8 bytes divided by 4. A "
    "request is everything that is sent to the model: the definition of the tool and all messages with their tool "
    "calls. No answers are generated, so accuracy is not measured."
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
    """The number of times each check was made, and where it failed."""

    made: Counter[str] = field(default_factory=Counter)
    failed: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def check(self, what: str, where: str, *, right: bool, details: str = "") -> None:
        """Record the outcome of a check."""
        self.made[what] += 1
        if not right:
            self.failed[what].append(where)
            print(f"FAILED {what}: {where} {details}", file=sys.stderr, flush=True)


REPEATED = "repeated source characters in the last request, `compact`, with offsets"
AGAIN = "chunks whose text is shown more than once in the last request, `delta`"
PREFIX = "requests that start with the whole previous request, byte for byte, `delta`"
WHOLE = "runs whose final context equals `build_context` over all retrieved chunks, `{}`{}"
READ = "runs in which the model read exactly the text of this context, `compact`{}"
LOST = "runs in which the model was shown all retrieved text, `{}`"
INVERTED = "inverted pairs in search results, `{}`{}"
NUMBERS = "runs in which each number labels text of its document, `{}`"
WITH, WITHOUT = ", with offsets", ", without offsets"


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
        "Tokens", ABOUT.format(runs=runs), _figures(sums, checks), [*_tables(sums, sets), _orders(sums)], _notes(sums)
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
                _check_context(arm.name, run, shown, expected, where, checks, offsets=offsets)
    return sums


def _shown(
    name: str, run: AgentRun, found: Sequence[Sequence[str]], store: Store, where: str, checks: Checks
) -> list[list[Piece]]:
    """The pieces of the sources in each search result of the last request."""
    results = run.requests[-1].results
    if name in OURS:
        what = NUMBERS.format(name)
        try:
            pieces = pieces_of(results, numbered_documents(results), store.places)
        except ValueError as error:
            checks.check(what, where, right=False, details=str(error))
            return []
        checks.check(what, where, right=True)
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
        checks.check(REPEATED, where, right=not again, details=f"{again} characters")
    wrong = [
        pair for pair in map(_inverted, ([store.places[p.document] for p in result] for result in shown)) if pair[0]
    ]
    checks.check(INVERTED.format(name, WITH if offsets else WITHOUT), where, right=not wrong, details=str(wrong))
    lost = _lost(store, (store.places[one] for one in found), (piece.place for result in shown for piece in result))
    checks.check(LOST.format(name), where, right=not lost, details=repr(lost[:200]))
    if name == DELTA:
        documents = Counter(document for result in shown for document in {piece.document for piece in result})
        again = sum(times - 1 for times in documents.values())
        checks.check(AGAIN, where, right=not again, details=f"{again} chunks")
        for before, request in zip(run.requests, run.requests[1:], strict=False):
            checks.check(PREFIX, where, right=request.text.startswith(before.text))


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
    *,
    offsets: bool,
) -> None:
    """Compare the gathered and the shown text with the context of all retrieved chunks."""
    text, known = shown_as(expected.text), WITH if offsets else WITHOUT
    context = working_context_of(run.state).context()
    same = context.text == expected.text and _identity(context) == _identity(expected)
    checks.check(WHOLE.format(name, known), where, right=same, details=_difference(context.text, expected.text))
    if name == COMPACT:
        # The numbers between the passages are not part of the context.
        last = "".join("".join(piece.text.split()) for piece in shown[-1]) if shown else ""
        checks.check(READ.format(known), where, right=last == text, details=_difference(last, text))


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


def _figures(sums: dict[Case, Sums], checks: Checks) -> list[Figure]:
    figures = []
    for what in checks.made:
        made, failed = checks.made[what], len(checks.failed[what])
        asked = "0" if what.startswith(("repeated", "inverted", "chunks")) else "all"
        measured = f"{made - failed:,} of {made:,}"
        if what == REPEATED:
            measured = f"{_sum(sums, splitting=OFFSETS).repeated[COMPACT]:,} in {made:,} runs"
        elif what == AGAIN:
            measured = f"{failed:,} of {made:,} runs with such chunks"
        elif what.startswith("inverted"):
            name = DELTA if DELTA in what else COMPACT
            one = _sum(sums, splitting=OFFSETS if what.endswith(WITH) else NOTHING)
            measured = f"{one.inverted_inside[name]:,} of {one.pairs_inside[name]:,}"
        figures.append(Figure(what, asked, measured, not failed))
    return figures


def _tables(sums: dict[Case, Sums], sets: Sequence[str]) -> Iterator[Table]:
    """Yield the tables: the results of each set in the usual case, and the input of all sets in every case."""
    usual = [
        ([name, kind, str(k)], _sum(sums, data=name, kind=kind, k=k, splitting=OFFSETS, steps=ONE))
        for name, kind, k in product(sets, KINDS, KS)
    ]
    others = [
        ([f"{splitting}, {steps}", kind, str(k)], _sum(sums, kind=kind, k=k, splitting=splitting, steps=steps))
        for splitting, steps, kind, k in product((OFFSETS, NOTHING), (ONE, TWO), KINDS, KS)
    ]
    yield Table(
        f"**Search results in the last request** ({OFFSETS}, {ONE}): the share of the chunks of later searches that "
        "earlier searches had found; the mean number of tokens of the retriever tool, and how many of them repeat "
        "source text; the tokens of the other arms relative to the retriever tool:",
        ["set", "searches", "k", "found before", PLAIN, "of them repeated", TUTORIAL, DELTA, COMPACT],
        [[*names, *_result_cells(one)] for names, one in usual],
    )
    yield Table(
        "**Input of all model calls of a run** (all sets): the mean number of tokens of the retriever tool, and the "
        "input of the other arms relative to it; the share that equals the start of the previous request, which a "
        "provider's prompt cache can serve; the cost relative to the retriever tool, if cached input costs "
        f"{CACHED:g} times as much as other input:",
        [
            "chunks and steps",
            "searches",
            "k",
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
        f"{one.repeated[PLAIN] / 4 / one.runs:,.0f}",
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
    rows = []
    for splitting, name in product((OFFSETS, NOTHING), ARMS):
        one = _sum(sums, splitting=splitting)
        rows.append(
            [
                splitting,
                name,
                _share(one.inverted_inside[name], one.pairs_inside[name]),
                _share(one.inverted[name], one.pairs[name]),
                _share(one.repeated[name] // 4, one.results[name]),
            ]
        )
    return Table(
        "**Order and repeats in the last request**, all sets, kinds and k: pairs of chunks of one source in the wrong "
        "order, within each search result and over all results; tokens that repeat source text:",
        ["chunks", "arm", "inverted within a result", "inverted over all results", "repeated tokens"],
        rows,
    )


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)" if whole else "–"


def _notes(sums: dict[Case, Sums]) -> list[str]:
    different, reformulated = (_sum(sums, kind=kind) for kind in (DIFFERENT, REFORMULATED))
    delta, compact = _sum(sums).inverted[DELTA], _sum(sums).inverted[COMPACT]
    return [
        (
            f"Of the chunks of later searches, earlier ones had found {_found_before(different)} for different "
            f"questions and {_found_before(reformulated)} for one question in four forms. `delta` keeps document order "
            f"within each result, but not over all results ({delta:,} inverted pairs; `compact`: {compact:,}), because "
            "moving later results before earlier ones would change what was already sent to the model. `compact` does "
            "so, so a prompt cache serves less of its input."
        ),
        (
            "In `delta`, a chunk that overlaps text of an earlier result is shown whole, so the overlap is repeated. "
            "No chunk is shown twice."
        ),
        (
            "If the texts do not confirm an overlap, as in a source that repeats one line many times, oprag shows it "
            "twice, as `build_context` does, so that no text is lost. This is more frequent without offsets."
        ),
        (
            "oprag's tool has a longer description than the others, which is part of each request. Numbers, sources "
            "and pointers count as text of the results."
        ),
    ]


def _found_before(one: Sums) -> str:
    return f"{100 * one.shown_before / one.later:.0f} %"
