"""The order through LangChain's own splitters, whose offsets are missing, -1, tied or restart.

Stamped or located, the order is right. If not, the kind that was used is reported, and a mostly unknown order is warned
about.
"""

import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import (
    CharacterTextSplitter,
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
    TextSplitter,
)

from oprag import Context, PositionKind
from oprag._internal.warn import forget
from oprag.errors import PositionWarning, SourceWarning
from oprag.langchain import OrderPreservingRetriever, stamp_positions
from tests.adapters.langchain.conftest import giving
from tests.adapters.scripted import QUESTION


def prose(words: int, seed: int) -> str:
    """Paragraphs of sentences of made-up words; nothing of some length occurs in it twice."""
    generator = random.Random(seed)
    sentences: list[str] = []
    while sum(sentence.count(" ") + 1 for sentence in sentences) < words:
        length = generator.randint(5, 14)
        made = [
            "".join(generator.choice("bdfglmnprst") + generator.choice("aeiou") for _ in range(generator.randint(1, 4)))
            for _ in range(length)
        ]
        end = "\n\n" if generator.random() < 0.15 else " "
        sentences.append(" ".join(made).capitalize() + "." + end)
    return "".join(sentences).strip()


TEXT = prose(3000, seed=1)
MARKDOWN = "\n\n".join(f"{'#' * (1 + number % 2)} Title {number}\n\n{prose(150, seed=number)}" for number in range(8))


def count_words(text: str) -> int:
    return len(text.split())


def split(splitter: TextSplitter, text: str = TEXT, **metadata: Any) -> list[Document]:
    return splitter.split_documents([Document(text, metadata={"source": "book.txt", **metadata})])


def recursive(*, size: int = 500, overlap: int = 50, start: bool = True, **options: Any) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, add_start_index=start, **options)
    return split(splitter)


def in_tokens(overlap: int) -> list[Document]:
    """LangChain takes the overlap in tokens from an offset in characters, and then does not find the text."""
    return recursive(size=80, overlap=overlap, length_function=count_words)


def by_expression() -> list[Document]:
    """LangChain joins the pieces with the expression itself, so that no chunk is in the text."""
    return split(
        CharacterTextSplitter(
            separator=r"\s+", is_separator_regex=True, chunk_size=300, chunk_overlap=30, add_start_index=True
        )
    )


def by_section() -> list[Document]:
    """The offsets restart in each section, and the headers do not say which section comes first."""
    sections = MarkdownHeaderTextSplitter([("#", "part"), ("##", "chapter")]).split_text(MARKDOWN)
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=30, add_start_index=True)
    chunks = splitter.split_documents(sections)
    return [chunk.model_copy(update={"metadata": {**chunk.metadata, "source": "book.txt"}}) for chunk in chunks]


def by_page(**names: Callable[[int], Any]) -> list[Document]:
    """A PDF reader's document a page; the offsets restart on each page."""
    pages = [
        Document(
            TEXT[start : start + 1500],
            metadata={"source": "book.txt", **{key: name(page) for key, name in names.items()}},
        )
        for page, start in enumerate(range(0, len(TEXT), 1500))
    ]
    assert len(pages) > 10
    return RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40, add_start_index=True).split_documents(pages)


def shuffled(chunks: list[Document]) -> list[Document]:
    """In the order of some ranking."""
    ranked = random.Random(7).sample(chunks, len(chunks))
    assert ranked != chunks
    return ranked


def ordered(chunks: list[Document], **options: Any) -> Context:
    return OrderPreservingRetriever(retriever=giving(shuffled(chunks)), **options).get_context(QUESTION)


def kept(context: Context) -> list[Document]:
    return [chunk.origin for chunk in context.kept]


SPLITS: dict[str, Callable[[], list[Document]]] = {
    "recursive": recursive,
    "recursive without start_index": lambda: recursive(start=False),
    "recursive without overlap": lambda: recursive(overlap=0),
    "tokens, overlap 20": lambda: in_tokens(20),
    "tokens, overlap 40": lambda: in_tokens(40),
    "regular expression": by_expression,
    "regular expression, kept": lambda: split(
        CharacterTextSplitter(separator=r"\s+", is_separator_regex=True, keep_separator=True, chunk_size=300)
    ),
    "markdown sections": by_section,
    "pages": lambda: by_page(page=int),
}
each_split = pytest.mark.parametrize("make", SPLITS.values(), ids=SPLITS)


@each_split
def test_stamped_chunks_are_in_order_whatever_split_them(make: Callable[[], list[Document]]):
    stamped = stamp_positions(make())
    assert len(stamped) > 10
    context = ordered(stamped)
    assert kept(context) == stamped
    assert [(report.kind, report.missing) for report in context.sources] == [(PositionKind.STAMPED, 0)]


@each_split
def test_stamped_chunks_keep_all_of_their_text(make: Callable[[], list[Document]]):
    stamped = stamp_positions(make())
    words = " ".join(ordered(stamped).text.split())
    assert all(" ".join(chunk.page_content.split()) in words for chunk in stamped)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (make, MARKDOWN if name == "markdown sections" else TEXT)
        for name, make in SPLITS.items()
        if "expression" not in name
    ],
    ids=[name for name in SPLITS if "expression" not in name],
)
def test_located_chunks_are_in_order_whatever_split_them(make: Callable[[], list[Document]], text: str):
    chunks = make()
    context = ordered(chunks, read_source={"book.txt": text})
    assert kept(context) == chunks
    assert [report.missing for report in context.sources] == [0]


def test_start_index_orders_chunks_that_were_not_stamped():
    chunks = recursive()
    context = ordered(chunks)
    assert kept(context) == chunks
    assert [(report.kind, report.field) for report in context.sources] == [(PositionKind.OFFSET, "start_index")]


def test_without_start_index_the_rank_stays_and_a_warning_says_what_to_do():
    chunks = recursive(start=False)
    with pytest.warns(PositionWarning, match=r"have no position.*\('book.txt'\); pass position_key=") as caught:
        context = ordered(chunks)
    assert len(caught) == 1
    assert kept(context) == shuffled(chunks)
    assert [(report.kind, report.missing) for report in context.sources] == [(PositionKind.NONE, len(chunks))]
    assert "none" in context.explain()


@pytest.mark.parametrize("overlap", [20, 40])
def test_an_offset_of_minus_one_is_no_position(overlap: int):
    """Sorting by `start_index` alone puts these chunks before the first one."""
    chunks = in_tokens(overlap)
    lost = [chunk for chunk in chunks if chunk.metadata["start_index"] == -1]
    assert 10 < len(lost) < len(chunks) / 2
    with pytest.warns(PositionWarning, match="have no position"):
        context = ordered(chunks)
    found = [chunk for chunk in chunks if chunk not in lost]
    assert [chunk for chunk in kept(context) if chunk in found] == found
    # Some of the others overlap the chunks beside them.
    (report,) = context.sources
    assert (report.kind, report.missing < len(lost)) == (PositionKind.OFFSET, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PositionWarning)
        dropped = kept(ordered(chunks, on_missing_position="drop"))
        assert dropped == kept(context)[: len(chunks) - report.missing]
        assert kept(ordered(chunks, on_missing_position="first"))[report.missing :] == dropped


def test_offsets_of_minus_one_alone_are_warned_about():
    chunks = by_expression()
    assert {chunk.metadata["start_index"] for chunk in chunks} == {-1}
    with pytest.warns(PositionWarning, match="have no position"):
        context = ordered(chunks)
    assert kept(context) == shuffled(chunks)


def test_offsets_that_restart_in_each_section_are_not_believed():
    chunks = by_section()
    assert sum(chunk.metadata["start_index"] == 0 for chunk in chunks) == 8
    with pytest.warns(PositionWarning, match="offsets of a source contradict"):
        context = ordered(chunks)
    assert kept(context) == shuffled(chunks)
    assert [(report.kind, report.missing) for report in context.sources] == [(PositionKind.NONE, len(chunks))]


def test_sections_that_do_not_say_their_source_are_warned_about():
    chunks = [Document(chunk.page_content, metadata={"part": chunk.metadata["part"]}) for chunk in by_section()]
    with pytest.warns(SourceWarning, match="do not name their source.*pass source_key="):
        assert kept(ordered(chunks)) == shuffled(chunks)


PAGES: dict[str, dict[str, Callable[[int], Any]]] = {
    "from 0": {"page": int},
    "from 1": {"page_number": lambda page: page + 1},
    "strings": {"page": str},
    "floats": {"page": float},
    "labels": {"page_label": lambda page: ["i", "ii", "iii", "iv", "v"][page] if page < 5 else str(page - 4)},
    "number and label": {"page": int, "page_label": lambda page: f"A-{page + 1}"},
}


@pytest.mark.filterwarnings("ignore:page labels alone tell the order")
@pytest.mark.parametrize("names", PAGES.values(), ids=PAGES)
def test_page_and_offset_order_chunks_that_were_not_stamped(names: dict[str, Callable[[int], Any]]):
    chunks = by_page(**names)
    context = ordered(chunks)
    assert kept(context) == chunks
    assert [report.kind for report in context.sources] == [PositionKind.PAGE_OFFSET]


def test_pages_without_offsets_are_in_order_and_ties_keep_their_rank_with_a_warning():
    """The default of a PDF loader and a splitter: nothing tells the order inside a page."""
    chunks = by_page(page=str)
    for chunk in chunks:
        del chunk.metadata["start_index"]
    with pytest.warns(PositionWarning, match="share a page or another number"):
        context = ordered(chunks)
    assert kept(context) == sorted(shuffled(chunks), key=lambda chunk: int(chunk.metadata["page"]))
    assert [report.kind for report in context.sources] == [PositionKind.PAGE]


class Outcome(NamedTuple):
    """Of many random retrievals: how often the order was wrong, and how often it was so without a warning."""

    wrong: int
    silent: int


def outcome(chunks: list[Document], k: int, places: Sequence[int] | None = None) -> Outcome:
    """Retrieve random chunks.

    Args:
        chunks: The chunks in the sequence of the source.
        k: How many are retrieved.
        places: The place of each chunk, such as its page; its number by default.
    """
    place = {id(chunk): at for chunk, at in zip(chunks, places or range(len(chunks)), strict=True)}
    generator = random.Random(k)
    wrong = silent = 0
    for _ in range(100):
        forget()  # each draw is a process of its own
        retriever = OrderPreservingRetriever(retriever=giving(generator.sample(chunks, k)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = [place[id(chunk)] for chunk in retriever.invoke(QUESTION)]
        assert len(found) == k
        is_wrong = found != sorted(found)
        wrong += is_wrong
        silent += is_wrong and not any(issubclass(warning.category, PositionWarning) for warning in caught)
    return Outcome(wrong, silent)


def lazy_load(**names: Callable[[int], Any]) -> Iterator[Document]:
    """The pages of a PDF, one by one, as its loader gives them."""
    for page, start in enumerate(range(0, len(TEXT), 1500)):
        named = {key: name(page) for key, name in names.items()}
        yield Document(TEXT[start : start + 1500], metadata={"source": "book.pdf", **named})


@pytest.mark.parametrize("numbering", [True, False], ids=["ours", "another tool's"])
@pytest.mark.parametrize("start", [False, True], ids=["no offsets", "offsets"])
@pytest.mark.parametrize("name", ["from 0", "from 1", "strings", "floats"])
@pytest.mark.parametrize("k", [2, 10])
def test_pages_that_are_stamped_one_by_one_are_in_the_order_of_the_pages(
    k: int, name: str, start: bool, numbering: bool
):
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40, add_start_index=start)
    chunks: list[Document] = []
    pages: list[int] = []
    for number, page in enumerate(lazy_load(**PAGES[name])):
        stamped = stamp_positions(splitter.split_documents([page]))
        chunks += stamped
        pages += [number] * len(stamped)
    assert len(chunks) > 30
    if not numbering:
        for chunk in chunks:
            chunk.metadata.pop("chunk_numbering", None)
    assert outcome(chunks, k, pages).wrong == 0


@pytest.mark.parametrize("start", [False, True], ids=["no offsets", "offsets"])
@pytest.mark.parametrize("k", [2, 10])
def test_pages_that_are_stamped_together_are_in_order(k: int, start: bool):
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40, add_start_index=start)
    chunks = stamp_positions(splitter.split_documents(lazy_load(page=int)))
    assert outcome(chunks, k) == (0, 0)


def markdown_sections() -> list[Document]:
    sections = MarkdownHeaderTextSplitter([("#", "part"), ("##", "chapter")]).split_text(MARKDOWN)
    assert len(sections) == 8
    return sections


@pytest.mark.parametrize("start", [False, True], ids=["no offsets", "offsets"])
@pytest.mark.parametrize("k", [2, 4, 8, 16])
def test_sections_that_are_stamped_in_two_batches_are_never_wrong_silently(k: int, start: bool):
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=30, add_start_index=start)
    sections = markdown_sections()
    batches = [splitter.split_documents(sections[at : at + 4]) for at in (0, 4)]
    chunks = [chunk for batch in batches for chunk in stamp_positions(batch, source="book.md")]
    assert outcome(chunks, k).silent == 0
    together = stamp_positions([chunk for batch in batches for chunk in batch], source="book.md")
    assert outcome(together, k) == (0, 0)


@pytest.mark.parametrize("start", [False, True], ids=["no offsets", "offsets"])
@pytest.mark.parametrize("k", [2, 10])
def test_files_under_one_source_that_are_stamped_together_are_in_the_given_order(k: int, start: bool):
    """Page 2 of the second file comes after page 5 of the first."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40, add_start_index=start)
    first = list(lazy_load(page=int))
    second = [Document(page.page_content.upper(), metadata=page.metadata) for page in first]
    with pytest.warns(PositionWarning, match="page numbers decrease"):
        chunks = stamp_positions(splitter.split_documents([*first, *second]))
    assert outcome(chunks, k) == (0, 0)


def test_chunks_of_a_second_call_do_not_mix_with_the_first_without_a_warning():
    """One page of a file changed, and was split, stamped and added again."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0)
    pages = list(lazy_load())
    chunks = stamp_positions(splitter.split_documents(pages))
    changed = stamp_positions(
        splitter.split_documents([Document("Changed. " + pages[5].page_content, metadata=pages[5].metadata)])
    )
    retriever = OrderPreservingRetriever(retriever=giving([*changed, *chunks[20:24]]))
    with pytest.warns(PositionWarning, match="stamped in several calls"):
        retriever.invoke(QUESTION)


def test_a_source_that_is_added_again_as_it_was_stays_in_order():
    once, again = (stamp_positions(recursive(start=False)) for _ in range(2))
    assert outcome([chunk for both in zip(once[::2], again[1::2], strict=False) for chunk in both], 12) == (0, 0)


def test_whole_sources_that_are_stamped_one_by_one_are_in_order():
    books = [stamp_positions(split(RecursiveCharacterTextSplitter(chunk_size=300), TEXT, source=name)) for name in "ab"]
    found = ordered([*books[0], *books[1]], source_ranking="name")
    assert kept(found) == [*books[0], *books[1]]


def tied() -> list[Document]:
    """langchain#21475: both words of "chunk chunk" are said to start at 0."""
    splitter = CharacterTextSplitter(separator=" ", chunk_size=5, chunk_overlap=5, add_start_index=True)
    chunks = split(splitter, "chunk chunk")
    assert [(chunk.page_content, chunk.metadata["start_index"]) for chunk in chunks] == [("chunk", 0)] * 2
    return chunks


def test_equal_pieces_that_share_an_offset_are_reported_as_duplicates():
    context = OrderPreservingRetriever(retriever=giving(tied())).get_context(QUESTION)
    assert [(drop.chunk.rank, drop.reason, drop.value) for drop in context.dropped] == [(1, "duplicate", 0)]


def test_equal_pieces_that_share_an_offset_are_two_when_they_are_stamped():
    retriever = OrderPreservingRetriever(retriever=giving(stamp_positions(tied())), separator=" ")
    assert len(retriever.invoke(QUESTION)) == 2
    assert retriever.get_context(QUESTION).text == "chunk chunk"


@pytest.mark.parametrize("overlap", [50, 150, 250])
def test_overlaps_are_stitched_to_the_text_of_the_source(overlap: int):
    context = ordered(recursive(overlap=overlap))
    assert context.text == TEXT
    assert len(context.passages) == 1


def test_stitched_documents_are_the_text_of_the_source():
    retriever = OrderPreservingRetriever(retriever=giving(shuffled(recursive(overlap=100))), stitch=True)
    assert [document.page_content for document in retriever.invoke(QUESTION)] == [TEXT]


def test_without_overlap_nothing_but_white_space_changes():
    context = ordered(recursive(overlap=0))
    assert context.text.split() == TEXT.split()
    for passage in context.passages:
        assert " ".join(TEXT[span.start : span.end] for span in passage.spans).split() == passage.text.split()


def test_some_of_the_chunks_are_stitched_to_runs_of_the_source():
    chunks = recursive(overlap=100)
    best = random.Random(3).sample(chunks, 12)
    context = OrderPreservingRetriever(retriever=giving(best), gap="[...]").get_context(QUESTION)
    runs = context.text.split("\n\n[...]\n\n")
    assert len(runs) == len(context.passages) > 1
    assert all(run in TEXT for run in runs)
    starts = [TEXT.index(run) for run in runs]
    assert starts == sorted(starts)
    assert all(TEXT[passage.spans[0].start : passage.spans[-1].end] == passage.text for passage in context.passages)
    assert all(any(chunk.page_content in run for run in runs) for chunk in best)


def test_located_overlaps_are_stitched_where_the_splitter_lost_the_offset():
    context = ordered(in_tokens(20), read_source={"book.txt": TEXT})
    assert context.text == TEXT


@pytest.mark.parametrize("overlap", [0, 20, 60])
def test_in_a_text_that_repeats_nothing_is_lost(overlap: int):
    """Where every overlap is possible none is certain, and losing nothing wins over repeating nothing."""
    text = "All rights are reserved by the owner. " * 60
    splitter = RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=overlap, add_start_index=True)
    chunks = split(splitter, text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PositionWarning)
        context = ordered(chunks)
    assert len(re.findall("owner", context.text)) >= 60
    assert sorted(map(id, kept(context))) == sorted(map(id, chunks))


def transcript(*, video: str = "abc123XYZ_-", pieces: int = 8) -> list[Document]:
    """A transcript as `YoutubeLoader` of langchain-community 0.4 makes it with `TranscriptFormat.CHUNKS`."""
    return [
        Document(
            prose(40, seed=number),
            metadata={
                "source": f"https://www.youtube.com/watch?v={video}&t={30 * number}s",
                "start_seconds": 30 * number,
                "start_timestamp": f"00:{number // 2:02d}:{30 * (number % 2):02d}",
            },
        )
        for number in range(pieces)
    ]


def test_the_chunks_of_a_transcript_are_in_order():
    chunks = transcript()
    context = ordered(chunks)
    assert kept(context) == chunks
    (report,) = context.sources
    assert (report.source, report.kind) == ("https://www.youtube.com/watch?v=abc123XYZ_-", PositionKind.PAGE)
    assert (report.field, report.missing) == ("start_seconds", 0)


def test_the_time_in_the_url_is_a_position_too():
    chunks = transcript()
    for chunk in chunks:
        chunk.metadata = {"source": chunk.metadata["source"]}
    assert kept(ordered(chunks)) == chunks


def test_two_transcripts_are_two_sources():
    first, second = transcript(video="one"), transcript(video="two")
    context = ordered([*first, *second], source_ranking="name")
    assert kept(context) == [*first, *second]
    assert [report.chunks for report in context.sources] == [8, 8]


def test_offsets_in_a_transcript_count_from_its_chunks():
    # The splitter begins anew with each chunk of the loader.
    splitter = RecursiveCharacterTextSplitter(chunk_size=100, chunk_overlap=0, add_start_index=True)
    chunks = splitter.split_documents(transcript())
    assert len(chunks) > 10
    context = ordered(chunks)
    assert kept(context) == chunks
    assert [(report.kind, report.field) for report in context.sources] == [
        (PositionKind.PAGE_OFFSET, "start_seconds, start_index")
    ]


def test_stamped_transcripts_are_numbered_by_video():
    stamped = stamp_positions(transcript())
    assert [document.metadata["chunk_index"] for document in stamped] == list(range(8))


def messages(workspace: str | None) -> list[Document]:
    """An export as `SlackDirectoryLoader` of langchain-community 0.4 loads it: each message has a source of its own."""
    chunks = []
    for number in range(8):
        user, timestamp = f"U{number % 3}", f"17040672{10 + number}.000100"
        permalink = f"{workspace}/archives/C024BE91L/p{timestamp.replace('.', '')}"
        source = permalink if workspace else f"general - {user} - {timestamp}"
        metadata = {"source": source, "channel": "general", "timestamp": timestamp, "user": user}
        chunks.append(Document(prose(20, seed=number), metadata=metadata))
    return chunks


@pytest.mark.parametrize("workspace", [None, "https://acme.slack.com"])
def test_messages_of_a_chat_are_warned_about_and_two_keys_put_them_in_order(workspace: str | None):
    chunks = messages(workspace)
    with pytest.warns(SourceWarning, match="8 of 8 chunks.*look like parts of one.*source_key="):
        assert kept(ordered(chunks)) == shuffled(chunks)
    assert kept(ordered(chunks, source_key="channel", position_key="timestamp")) == chunks


def test_the_misspelt_keys_of_a_retriever_are_warned_about():
    with pytest.warns(SourceWarning, match="source_key='sorce'.*did you mean 'source'"):
        ordered(stamp_positions(recursive()), source_key="sorce")
    with pytest.warns(PositionWarning, match="position_key='strat_index'.*did you mean 'start_index'") as caught:
        ordered(recursive(), position_key="strat_index")
    assert len(caught) == 1


def pdf(*, offsets: bool = True) -> list[Document]:
    """Pages as `PyPDFLoader` makes them: `page` counts from 0, and `page_label` is what is printed."""
    chunks = by_page(page=int, page_label=lambda page: "ivx"[page] if page < 2 else str(page - 1))
    for chunk in [] if offsets else chunks:
        del chunk.metadata["start_index"]
    return chunks


@pytest.mark.parametrize("offsets", [True, False])
def test_headers_and_reports_show_the_page_that_is_printed(offsets: bool):
    chunk = next(one for one in pdf(offsets=offsets) if one.metadata["page"] == 5)
    retriever = OrderPreservingRetriever(retriever=giving([chunk]), header="{source}, page {page}")
    context = retriever.get_context(QUESTION)
    assert context.text.startswith("book.txt, page 4\n")
    report = context.explain()
    assert "p. 4" in report
    assert "p. 5" not in report
    (position,) = [one.position for one in context.kept]
    assert position is not None
    assert position.field.startswith("page")


def test_pages_are_sorted_by_number_and_shown_by_label():
    chunks = pdf()
    context = ordered(chunks, header="<<{page}>>", stitch=False)
    assert kept(context) == chunks
    labels = [chunk.metadata["page_label"] for chunk in chunks]
    assert list(dict.fromkeys(re.findall("<<(.*)>>", context.text))) == list(dict.fromkeys(labels))
