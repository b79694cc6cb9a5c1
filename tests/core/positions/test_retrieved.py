import warnings

import pytest

from oprag import Chunk, ContextOptions, PositionKind, SourceReport, arrange, build_context
from oprag._internal.warn import forget
from oprag.chunk import Place, Uncertain, changed
from oprag.errors import PositionWarning, SourceWarning, UncertainOrderError
from oprag.positions import source_order
from oprag.positions.retrieved import SearchedStore, place, undecided, warn_about
from tests.helpers import hit, ranks


def test_source_position_and_span_are_filled_in():
    (chunk,) = arrange([hit("text", 0, chunk_index=4, start_index=100)])
    assert chunk.source == "book"
    assert chunk.position is not None
    assert chunk.position.key == (4,)
    assert chunk.span == (100, 104, None)


def test_each_source_has_its_own_kind_and_report():
    chunks = [
        hit("a", 0, source="one", chunk_index=1),
        hit("b", 1, source="two", page=1),
        hit("c", 2, source="two"),
        hit("d", 3, source="one", chunk_index=0),
    ]
    context = build_context(chunks, order="rank")
    assert context.sources == (
        SourceReport("one", PositionKind.STAMPED, "chunk_index", chunks=2, missing=0),
        SourceReport("two", PositionKind.PAGE, "page", chunks=2, missing=1),
    )
    assert ranks(context.kept) == [0, 1, 2, 3]


def test_a_chunk_without_a_source_is_a_source_of_its_own():
    chunks = [Chunk("a", 0, metadata={"page": 1}), Chunk("b", 1, metadata={"page": 0})]
    with pytest.warns(SourceWarning, match="2 of 2 chunks do not name their source"):
        context = build_context(chunks)
    assert [report.chunks for report in context.sources] == [1, 1]
    assert ranks(context.kept) == [0, 1]


def test_chunks_of_a_video_are_one_source_whatever_time_their_addresses_begin_at():
    chunks = [hit("b", 0, source="https://youtu.be/abc?t=90"), hit("a", 1, source="https://youtu.be/abc?t=30")]
    context = build_context(chunks)
    assert ranks(context.kept) == [1, 0]
    assert [(report.source, report.chunks) for report in context.sources] == [("https://youtu.be/abc", 2)]


@pytest.mark.parametrize(
    ("metadata", "asks"),
    [
        ({"chunk_index": [0, 1], "chunk_numbering": ["n0123456789ab"] * 2}, False),
        ({"chunk_index": [0, 1]}, True),  # another tool may have begun again in each call
        ({"start_index": [0, 90]}, False),
        ({"page": [1, 2], "start_index": [0, 0]}, False),
        ({"page_label": ["i", "ii"], "start_index": [0, 0]}, True),
        ({"page": [1, 2]}, True),
        ({"row": [1, 2]}, True),
        ({"title": ["a", "b"]}, True),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_a_store_is_asked_where_metadata_of_retrieved_chunks_do_not_suffice(metadata, asks):
    rows = [dict(zip(metadata, values, strict=True)) for values in zip(*metadata.values(), strict=True)]
    placed = place([hit(f"text {rank}", rank, **row) for rank, row in enumerate(rows)], None, None)
    assert [group.strong for group in undecided(placed)] == [False] * asks


def test_what_was_found_before_is_kept():
    # Alone, the two chunks would be placed by the better kind that only they have.
    chunks = [
        hit("a", 0, page=2, start_index=0),
        hit("b", 1, page=1, start_index=900),
        hit("c", 2, page=3),
        hit("d", 3, page=0),
    ]
    context = build_context(chunks, k=2)
    assert {report.kind for report in context.sources} == {PositionKind.PAGE}
    again = build_context(context.kept)
    assert {report.kind for report in again.sources} == {PositionKind.PAGE}
    assert again.kept == context.kept


def test_what_was_found_before_is_not_kept_for_another_source():
    placed = arrange([hit("a", 0, page=1, shelf="s"), hit("b", 1, chunk_index=2, shelf="s", source="other")])
    again = build_context(placed, source_key="shelf", order="rank")
    assert [report.source for report in again.sources] == ["s"]
    assert [report.chunks for report in again.sources] == [2]


def test_chunks_of_two_contexts_can_be_put_together():
    one = build_context([hit("a", 0, chunk_index=1), hit("b", 1, chunk_index=0)]).kept
    two = build_context([hit("c", 2, page=1, start_index=0), hit("d", 3, page=0, start_index=0)]).kept
    with pytest.warns(PositionWarning, match="have no position"):
        context = build_context([*one, *two])
    assert sorted(ranks(context.kept)) == [0, 1, 2, 3]


CALLS = [
    hit("a", 0, chunk_index=1, chunk_numbering="n1", page=1, start_index=90),
    hit("b", 1, chunk_index=0, chunk_numbering="n2", page=2, start_index=0),
    hit("c", 2, chunk_index=0, chunk_numbering="n1", page=1, start_index=0),
]
RUNS = [
    Chunk("d", 0, source="book", id="d", previous_id="c"),
    Chunk("b", 1, source="book", id="b", previous_id="a"),
    Chunk("c", 2, source="book", id="c"),
    Chunk("a", 3, source="book", id="a"),
]
# Chunks that cause one warning, how it ends, and the ranks in order.
WARNED: dict[str, tuple[list[Chunk], str, list[int]]] = {
    "no position": (
        [
            *(hit("a", 0, title="t"), hit("b", 1, colour="red"), hit("c", 2, page=1)),
            *(hit("d", 3, source="other"), hit("e", 4, source="other")),
        ],
        "is unknown ('book' and 1 more source); pass position_key=...",
        [2, 0, 1, 3, 4],
    ),
    "one chunk without a position": (
        [*(hit(f"text {number}", number, chunk_index=number) for number in range(9)), hit("lost", 9)],
        "have no position, so their order is unknown ('book'); pass position_key=...",
        list(range(10)),
    ),
    "a page of two chunks": (
        [
            *(hit("b", 0, page=1), hit("a", 1, page=1), hit("c", 2, page=0)),
            *(hit("d", 3, source="other", row=1), hit("e", 4, source="other", row=1)),
        ],
        "ordered by retrieval rank there ('book' and 1 more source); pass position_key=...",
        [2, 0, 1, 3, 4],
    ),
    "stamps of several calls": (CALLS, "the order of the source ('book'); pass position_key=...", [2, 0, 1]),
    "runs of links": (RUNS, "comes first ('book'); pass position_key=...", [2, 0, 3, 1]),
    # A splitter that begins anew in each section.
    "offsets that contradict each other": (
        [hit(text, rank, start_index=0) for rank, text in enumerate("ab")],
        "the order is uncertain ('book'); pass position_key=...",
        [0, 1],
    ),
    "no source": (
        [Chunk("a", 0, metadata={"page": 3}), Chunk("b", 1, metadata={"page": 1, "title": 5}), hit("c", 2)],
        "2 of 3 chunks do not name their source, so they are not put in order; pass source_key=...",
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize("assemble", [arrange, build_context])
@pytest.mark.parametrize("name", WARNED)
def test_an_uncertain_order_is_warned_about_once(name, assemble):
    chunks, ends, order = WARNED[name]
    with pytest.warns((PositionWarning, SourceWarning)) as caught:
        ordered = assemble(chunks)
    assert ranks(getattr(ordered, "kept", ordered)) == order
    (warned,) = caught
    assert str(warned.message).endswith(ends)
    assert warned.filename == __file__
    assert warned.category is (SourceWarning if name == "no source" else PositionWarning)


@pytest.mark.parametrize("name", ["no position", "one chunk without a position", "offsets that contradict each other"])
@pytest.mark.parametrize("missing", ["first", "drop"])
def test_where_missing_positions_go_does_not_matter_for_the_warning(name, missing):
    chunks, ends, _ = WARNED[name]
    with pytest.warns(PositionWarning) as caught:
        build_context(chunks, on_missing_position=missing)
    assert [str(one.message).endswith(ends) for one in caught] == [True]


def test_runs_of_links_are_counted():
    report = build_context(RUNS, order="rank").sources[0]
    assert (report.kind, report.runs) == (PositionKind.LINKS, 2)


def test_each_cause_has_its_own_warning():
    chunks = [
        *(hit(text, rank, source="one", chunk_index=0, chunk_numbering=text) for rank, text in enumerate("ab")),
        *(hit(text, rank, source="two", page=1) for rank, text in enumerate("ab", 2)),
        *(hit(text, rank, source="three") for rank, text in enumerate("ab", 4)),
    ]
    with pytest.warns(PositionWarning) as caught:
        arrange(chunks)
    assert len({str(one.message).partition(" (")[0] for one in caught}) == len(caught) == 3


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([hit("a", 0, page=1), hit("b", 1, page=2)], id="one chunk a page"),
        pytest.param([hit("a", 0, page=1, id=1), hit("a", 1, page=1, id=2)], id="one text of a page twice"),
        pytest.param([hit("a", 0)], id="one chunk has no order"),
        pytest.param([hit("a", 0, source="x"), hit("b", 1, source="y")], id="one chunk a source"),
        pytest.param([], id="nothing"),
    ],
)
def test_there_is_no_warning_where_the_order_is_known_well_enough(chunks):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(ranks(arrange(chunks))) == ranks(chunks)


@pytest.mark.parametrize("options", [{"k": 1}, {"max_candidates": 1}, {"k": 2, "token_budget": 1, "count_tokens": len}])
def test_what_is_not_kept_is_not_warned_about(options):
    chunks = [hit("a", 0, page=1), hit("bb", 1), hit("cc", 2, page=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ranks(build_context(chunks, **options).kept) == [0]


def test_a_position_key_may_be_shared():
    assert ranks(arrange([hit("b", 0, act=2), hit("c", 1, act=2), hit("a", 2, act=1)], position_key="act")) == [2, 0, 1]


def test_the_order_of_ranks_needs_no_positions():
    assert ranks(arrange([hit("a", 1), hit("b", 0)], order="rank")) == [0, 1]


def test_one_chunk_alone_needs_no_source():
    assert ranks(arrange([Chunk("a", 0)])) == [0]


@pytest.mark.parametrize("field", ["page", "page_number"])
def test_pages_that_restart_are_warned_about_where_no_kept_chunks_share_one(field):
    # Two files under one source: whether page 2 comes before page 5 depends on the file.
    chunks = [hit(f"text {rank}", rank, **{field: page, "start_index": 0}) for rank, page in enumerate([5, 2, 5])]
    with pytest.warns(PositionWarning, match="contradict") as caught:
        assert ranks(build_context(chunks, k=2).kept) == [1, 0]
    assert len(caught) == 1


def test_stamps_of_several_calls_are_warned_about_where_the_kept_chunks_are_of_one():
    # The chunk that shows it is retrieved and not kept; whether the others stand right is unknown all the same.
    chunks = [changed(CALLS[number], rank=rank) for rank, number in enumerate([0, 2, 1])]
    with pytest.warns(PositionWarning, match="stamped in several calls") as caught:
        assert ranks(build_context(chunks, k=2).kept) == [1, 0]
    assert len(caught) == 1


def test_offsets_in_the_rows_of_a_table_restart_without_a_warning():
    chunks = [hit(f"text {rank}", rank, row=row, start_index=0) for rank, row in enumerate([5, 2, 3])]
    assert ranks(arrange(chunks)) == [1, 2, 0]


def test_a_misspelt_position_key_is_not_blamed_on_the_offsets():
    chunks = [hit(text, rank, start_index=0) for rank, text in enumerate("ab")]
    with pytest.warns(PositionWarning) as caught:
        arrange(chunks, position_key="strat_index")
    assert ["did you mean" in str(one.message) for one in caught] == [True]
    with pytest.warns(PositionWarning, match="have no position"):
        arrange(chunks, position_key=lambda chunk: None)


def rows_of_a_file(count: int, each: int = 1) -> list[Chunk]:
    """Chunks of documents that have only a generated id, as readers make of each row or section of a file."""
    ids = [f"00000000-0000-4000-8000-{number:012}" for number in range(count)]
    return [Chunk(f"row {number}", number, document_id=ids[number // each]) for number in range(count * each)]


def test_documents_without_a_name_may_be_the_rows_of_a_file():
    with pytest.warns(SourceWarning, match="may be parts of one file"):
        context = build_context(rows_of_a_file(6))
    assert (context.certainty, [doubt.chunks[0].text for doubt in context.doubts]) == ("unknown", ["row 0"])
    # A few documents, or documents of many chunks, are what the user has.
    for chunks in (rows_of_a_file(3), rows_of_a_file(6, each=4)):
        forget()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            build_context(chunks)
        assert not any("parts of one file" in str(one.message) for one in caught)
    named = [changed(chunk, source="a.csv") for chunk in rows_of_a_file(6)]
    assert build_context(named, on_uncertain="ignore").certainty == "unknown"


@pytest.mark.parametrize(("pages", "said"), [([1, 2, 3], True), ([1], False), ([1, 1, 1, 1, 1], False)])
def test_documents_of_a_page_without_a_name_may_be_the_pages_of_a_file(pages, said):
    chunks = [
        changed(chunk, metadata={"page_label": page})
        for chunk, page in zip(rows_of_a_file(len(pages)), pages, strict=True)
    ]
    context = build_context([*chunks, hit("other", len(pages))], on_uncertain="ignore")
    assert any("parts of one file" in doubt.what for doubt in context.doubts) == said


def test_what_happens_where_the_order_is_uncertain():
    vague = [hit(text, rank) for rank, text in enumerate("ab")]
    with pytest.warns(PositionWarning):
        context = build_context(vague)
    assert (context.certainty, len(context.doubts)) == ("unknown", 1)
    assert context.to_dict()["certainty"] == "unknown"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forget()
        assert build_context(vague, on_uncertain="ignore").doubts == context.doubts
        with pytest.raises(UncertainOrderError, match=r"have no position.* \('book'\); pass position_key="):
            build_context(vague, on_uncertain="error")
        # Nothing is uncertain where ranks decide, or of a single chunk.
        assert build_context(vague, order="rank", on_uncertain="error").certainty == "known"
        assert build_context(vague[:1], on_uncertain="error").certainty == "known"


CAUSES = [cause for name in source_order.__all__ if isinstance(cause := getattr(source_order, name), str)]
NAMES = {"path": f"/data/{'folder/' * 500}manual.pdf", "title": f"{'The manual of the machine ' * 60}part 7"}
METADATA = {f"key {number}": number for number in range(300)}
INDEX = SearchedStore("1", "check_positions(index)")


def doubtful(cause: str, *names: str) -> list[Chunk]:
    """Chunks of sources whose order is uncertain for this reason."""
    doubt = Place((1,), PositionKind.PAGE, "page", uncertain=(Uncertain(cause, "alone"),))
    return [Chunk("text", rank, name, METADATA, place=doubt) for rank, name in enumerate([*names, *names])]


def told(chunks: list[Chunk], store: SearchedStore) -> str:
    """The only warning, which is also the message of the error."""
    placed = place(chunks, None, None)
    with pytest.raises(UncertainOrderError) as error:
        warn_about(placed, placed.chunks, ContextOptions(on_uncertain="error"), lambda: store)
    with pytest.warns((PositionWarning, SourceWarning)) as caught:
        warn_about(placed, placed.chunks, ContextOptions(), lambda: store)
    assert [str(one.message) for one in caught] == [str(error.value)]
    return str(error.value)


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_warnings_are_short_and_keep_the_end_of_the_name(cause, name):
    message = told(doubtful(cause, name), INDEX)
    assert len(message) <= 200
    assert message.startswith(f"{cause} (…")
    assert message.endswith(f"{name[-8:]}'); check_positions(index) shows the fix")
    several = told(doubtful(cause, name, *map(str, range(1000))), SearchedStore("2", INDEX.check))
    assert len(several) <= 200
    assert several.endswith(f"{name[-8:]}' and 1,000 more sources); check_positions(index) shows the fix")


@pytest.mark.parametrize("cause", CAUSES)
def test_the_last_warning_of_a_cause_is_short(cause):
    chunks = [place(doubtful(cause, f"source {number}"), None, None) for number in range(5)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for placed in chunks:
            warn_about(placed, placed.chunks, ContextOptions(), lambda: INDEX)
    assert len(caught) == 4
    last = str(caught[3].message)
    assert last == f"{cause}; more sources are affected; check_positions(index) shows the fix"
    assert len(last) <= 200


@pytest.mark.parametrize(
    ("store", "action"), [(INDEX, "check_positions(index) shows the fix"), (SearchedStore(), "pass source_key=...")]
)
@pytest.mark.parametrize(
    "sources",
    [
        pytest.param([None] * 1000, id="none"),
        pytest.param([f"{NAMES['path'][-1900:]}#{number}" for number in range(1000)], id="parts"),
        pytest.param([f"{'./' * number}a.txt" for number in range(1000)], id="spellings"),
        pytest.param([f"{number:08}-0000-4000-8000-000000000000" for number in range(1000)], id="documents"),
    ],
)
def test_warnings_about_sources_are_short(sources, store, action):
    chunks = [Chunk("text", rank, metadata=METADATA, document_id=name) for rank, name in enumerate(sources)]
    message = told(chunks, store)
    assert len(message) <= 200
    assert message.endswith(f"; {action}")


def test_secrets_in_the_name_of_a_source_are_masked():
    name = f"https://user:hunter2hunter2@example.com/{'a/' * 50}b.pdf"
    chunks = [Chunk(text, rank, name) for rank, text in enumerate("ab")]
    with pytest.warns(PositionWarning) as caught:
        arrange(chunks)
    assert "hunter2" not in str(caught[0].message)
    assert "/b.pdf')" in str(caught[0].message)


@pytest.mark.parametrize(
    ("store", "action"),
    [
        (SearchedStore("1", "check_positions(store)"), "check_positions(store) shows the fix"),
        (SearchedStore(option="index"), "pass index=..."),
        (SearchedStore(), "pass position_key=..."),
    ],
)
def test_the_action_depends_on_what_was_searched(store, action):
    placed = place([hit("a", 0), hit("b", 1)], None, None)
    with pytest.warns(PositionWarning) as caught:
        warn_about(placed, placed.chunks, ContextOptions(), lambda: store)
    assert str(caught[0].message).endswith(f"; {action}")


@pytest.mark.parametrize("option", ["position_key", "source_key"])
@pytest.mark.parametrize("key", ["when", lambda chunk: chunk.metadata["when"]], ids=["name", "function"])
def test_an_option_that_was_given_is_not_asked_for_again(option, key):
    name = {"source": "book"} if option == "position_key" else {}
    chunks = [Chunk("a", 0, metadata={"when": 4, **name}), Chunk("b", 1, metadata={"when": None, **name})]
    with pytest.warns((PositionWarning, SourceWarning), match=f"; check the values of {option}$"):
        build_context(chunks, **{option: key})
