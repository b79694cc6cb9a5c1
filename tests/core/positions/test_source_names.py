import os
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from oprag import Chunk, arrange, build_context
from oprag.errors import PositionWarning, SourceWarning
from oprag.langchain import stamp_positions
from oprag.positions.source_names import names_of_parts, source_of, source_parts


def named(source_key: Any = None, *, given: Any = None, owner: str | None = None, **metadata: Any) -> str | None:
    return source_of(Chunk("text", 0, source=given, metadata=metadata, document_id=owner), source_key)


def test_names_come_before_ids_and_the_metadata_keys_in_a_fixed_sequence():
    metadata = {
        "source": "a",
        "file_path": "b",
        "url": "c",
        "file_name": "d",
        "ref_doc_id": "e",
        "document_id": "f",
    }
    found = []
    while metadata:
        found.append(named(owner="g", **metadata))
        del metadata[next(iter(metadata))]
    assert [*found, named(owner="g"), named()] == ["a", "b", "c", "d", "e", "f", "g", None]


def test_pages_with_random_ids_are_one_source():
    # A PDF reader makes one document a page, each with a random id.
    pages = [Chunk("text", rank, metadata={"file_name": "a.pdf", "document_id": f"id-{rank}"}) for rank in range(3)]
    assert {source_of(page) for page in pages} == {"a.pdf"}


@pytest.mark.parametrize(
    ("source_key", "expected"),
    [("book", "b"), (("missing", "book"), "b"), (("shelf", "book"), "s"), (lambda chunk: chunk.metadata["shelf"], "s")],
)
def test_a_source_key_is_a_name_several_or_a_function(source_key, expected):
    assert named(source_key, given="given", book="b", shelf="s") == expected


@pytest.mark.parametrize(
    "value", ["", " \n", None, True, False, [], ["a"], {}, {"a": 1}, float("nan"), float("inf"), Decimal("sNaN"), b"a"]
)
@pytest.mark.parametrize("source_key", ["book", ("book",), lambda chunk: chunk.metadata["book"]])
def test_a_value_that_cannot_name_falls_to_the_next_key(source_key, value):
    assert named(source_key, given=value, book=value, source=value, url="next") == "next"


def test_the_error_of_a_source_function_is_the_callers():
    with pytest.raises(KeyError):
        named(lambda chunk: chunk.metadata["missing"])


def documents(*metadata: Any) -> list[Chunk]:
    """Chunks with these metadata, best first."""
    return [Chunk(f"text {rank}", rank, metadata=each) for rank, each in enumerate(metadata)]


FILE = {"file_path": "/data/a.pdf"}
YOUTUBE = "https://www.youtube.com/watch"
NAMED: list[tuple[dict[str, Any], str]] = [
    ({"given": "given", "url": "seen"}, "given"),
    # A number, whatever type a store made of it.
    *(({"url": value}, "5") for value in (5, 5.0, "5", np.float64(5), np.int64(5), Decimal(5))),
    *(({"url": value}, str(value)) for value in (0, -3, 2.5, -2.5, np.int8(-128), 2**53 + 1)),
    # Beside a file it is a page, if it is small and the field is not asked for.
    *(({"source": page, **FILE}, "/data/a.pdf") for page in ("3", 3, 3.0, np.int64(3))),
    ({"source": 3, "file_name": "a.pdf"}, "a.pdf"),
    ({"source": 3}, "3"),
    ({"source": "3", "url": "https://example.com/a"}, "3"),
    *(({"source": "3", "file_path": path}, "3") for path in ("7", "")),
    ({"source": "3", "ref_doc_id": "7f"}, "3"),
    *(({"source": name, **FILE}, name) for name in ("a3", "20240301")),
    ({"source_key": "source", "source": "3", **FILE}, "3"),
    # A time in a URL is not part of the name.
    *(({field: f"{YOUTUBE}?v=abc_-&t=30s"}, f"{YOUTUBE}?v=abc_-") for field in ("source", "url")),
    ({"url": f"{YOUTUBE}?t=90&v=abc"}, f"{YOUTUBE}?v=abc"),
    ({"url": "https://youtu.be/abc?t=90"}, "https://youtu.be/abc"),
    ({"url": "https://vimeo.com/76979871#t=62"}, "https://vimeo.com/76979871"),
    *(
        ({"url": url}, url)
        for url in [
            *(f"{YOUTUBE}?v=abc", f"{YOUTUBE}?v=abc&t=1m30s"),
            *(f"https://forum.example.com/viewtopic.php?f=2&t=1234{more}" for more in ("", "&start=10")),
            *(f"https://example.com/{rest}" for rest in ("status/1?t=3a7Bq", "a?t=s", "#t=abc")),
        ]
    ),
]


@pytest.mark.parametrize(("metadata", "name"), NAMED, ids=str)
def test_the_name_is_read_from_metadata(metadata, name):
    assert named(**metadata) == name


@pytest.mark.parametrize("url", [f"{YOUTUBE}?v=abc&t=30s", "https://youtu.be/abc?t=30", "https://vimeo.com/7#t=30"])
def test_the_time_in_a_url_is_a_position(url):
    assert source_parts({"source": url}).seconds == 30


@pytest.mark.parametrize("path", [Path("docs/a.txt"), PurePosixPath("docs/a.txt")])
def test_a_path_names_a_source(path):
    name = os.fspath(path)
    assert named(source=path) == named("book", book=path) == named(given=path) == name
    assert build_context(documents({"source": path, "chunk_index": 1}, {"source": name, "chunk_index": 0})).text == (
        "text 1\n\ntext 0"
    )


# --- names that seem to be parts of one source ---


PERMALINKS = [f"https://acme.slack.com/archives/C024BE91L/p17040672{number}000100" for number in range(10, 14)]
AUTHORS = [f"general - U{number} - 17040672{number}.000100" for number in range(10, 14)]
SECTIONS = [f"https://example.com/docs/install.html#{part}" for part in ("linux", "macos", "windows")]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(PERMALINKS, id="permalinks of a chat"),
        pytest.param(AUTHORS, id="messages of a chat"),
        pytest.param(SECTIONS, id="sections of a page"),
        pytest.param([f"/data/a.pdf#page={page}" for page in (3, 7, 12)], id="pages of a file"),
        pytest.param([f"/data/a.pdf_{page}" for page in (3, 7, 12)], id="pages of a file, by a line"),
        pytest.param([f"a.pdf (page {page})" for page in (3, 7, 12)], id="pages of a file, in words"),
        pytest.param([f"https://example.com/read?book=5&page={page}" for page in (3, 7, 12)], id="pages of a query"),
        pytest.param([*PERMALINKS, "/data/notes.txt", "/data/more.txt"], id="among others"),
    ],
)
def test_chunks_with_a_source_of_their_own_each_are_warned_about(names):
    with pytest.warns(SourceWarning) as caught:
        build_context(documents(*({"source": name, "channel": "general"} for name in names)))
    message = str(caught[0].message)
    assert len(caught) == 1
    assert f"{names[0][-12:]}' and {min(len(names), 4) - 1} more sources)" in message
    assert "source_key=" in message


@pytest.mark.parametrize(
    "names",
    [
        (r"C:\docs\a.txt", "C:/docs/a.txt"),
        ("docs/a.txt", "./docs/a.txt", "docs/././a.txt", r".\docs\a.txt"),
        ("caf\u00e9.txt", "cafe\u0301.txt"),
    ],
    ids=ascii,
)
def test_spellings_of_one_name_are_warned_about(names):
    found = documents(*({"source": name, "chunk_index": index} for index in range(2) for name in [*names, "../a.txt"]))
    with pytest.warns(SourceWarning, match=f"{2 * len(names)} of {len(found)} chunks .* differ only in spelling"):
        assert build_context(found).certainty == "unknown"
    assert build_context(found, source_key=lambda chunk: chunk.metadata["source"]).certainty == "assumed"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(PERMALINKS[:2], id="two are a coincidence"),
        pytest.param([f"/data/page{number}.txt" for number in range(9)], id="numbered files"),
        pytest.param([f"report_{number}" for number in range(9)], id="numbered names"),
        pytest.param([f"https://example.com/article/{number}" for number in range(9)], id="numbered pages"),
        pytest.param([f"https://example.com/item/40058{number}31234" for number in range(9)], id="long ids"),
        pytest.param([f"https://example.com/view.php?id={number}" for number in range(9)], id="ids in a query"),
        pytest.param([f"https://example.com/#/docs/{number}" for number in range(9)], id="routes of an app"),
        pytest.param([f"https://example.com/{page}.html#top" for page in "abc"], id="places on several pages"),
        pytest.param([f"Ticket #{number}" for number in range(9)], id="a number sign"),
        pytest.param([f"C#{number}" for number in range(9)], id="a language"),
        pytest.param([f"faq/{name}.md" for name in ("how-to-pay", "refunds", "shipping")], id="a folder"),
        pytest.param([f"https://help.example.com/articles/15000012345{number}" for number in range(60, 69)], id="FAQ"),
        pytest.param([f"https://example.com/posts/17040672{number}123456" for number in range(10, 19)], id="posts"),
        pytest.param([f"Node.js {number}" for number in (18, 20, 22)], id="releases"),
        pytest.param([f"EN.ISO-{number}" for number in (9000, 9001, 9004)], id="standards"),
        pytest.param([f"10.1016/j.cell-{number}" for number in range(2001, 2009)], id="identifiers of articles"),
        pytest.param([f"com.example.app-{number}" for number in range(9)], id="packages"),
        pytest.param([f"https://srv.local:{port}" for port in range(8001, 8009)], id="servers"),
        pytest.param([f"server.log-2024010{day}" for day in range(1, 9)], id="rotated logs"),
        pytest.param(["a/b.txt", "a//b.txt", "../a/b.txt", "a./b.txt", "A/b.txt"], id="other paths"),
    ],
)
def test_ordinary_names_are_not_warned_about(names):
    context = build_context(documents(*({"source": name} for name in names)))
    assert [report.source for report in context.sources] == names


def test_a_long_name_takes_no_long_time_to_read():
    # Each time in it was searched for in the whole name: minutes.
    name = "https://example.com/?t=1" + "&t=1" * 100_000
    assert named(source=name) == name


def test_a_source_with_several_chunks_is_a_source():
    metadata = [{"source": name, "chunk_index": number} for name in PERMALINKS for number in (1, 0)]
    assert build_context(documents(*metadata)).text.startswith("text 1\n\ntext 0")


def test_a_function_names_what_it_wants_to_name():
    chunks = documents(*({"source": name} for name in PERMALINKS))
    context = build_context(chunks, source_key=lambda chunk: chunk.metadata["source"])
    assert [report.source for report in context.sources] == PERMALINKS


def test_other_orders_need_no_sources():
    assert len(build_context(documents(*({"source": name} for name in PERMALINKS)), order="rank").kept) == 4


# --- misspelt keys ---


@pytest.mark.parametrize("assemble", [build_context, arrange])
@pytest.mark.parametrize("order", ["source", "rank"])
@pytest.mark.parametrize(
    ("option", "category", "instead"),
    [("source_key", SourceWarning, "from the usual keys"), ("position_key", PositionWarning, "no position is known")],
)
def test_a_key_that_no_chunk_has_is_warned_about(assemble, order, option, category, instead):
    chunks = documents(*({"source": "book", "chapter": "a", "chunk_index": number} for number in (2, 1)))
    options: dict[str, Any] = {option: "chaptre", "order": order}
    with pytest.warns(category, match="'chaptre'.*did you mean 'chapter'") as caught:
        assemble(chunks, **options)
    assert len(caught) == 1
    assert instead in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_warning_about_a_key_is_short():
    keys = [f"{number} {'key ' * 500}" for number in range(300)]
    with pytest.warns(SourceWarning, match="did you mean") as caught:
        build_context(documents(dict.fromkeys(keys, 1), {}), order="rank", source_key=f"{keys[7]}s")
    assert len(str(caught[0].message)) <= 200


def test_a_key_that_is_like_no_other_is_warned_about_without_a_guess():
    with pytest.warns(SourceWarning) as caught:
        build_context(documents({"source": "a"}, {"source": "a"}), order="rank", source_key="xyz")
    assert "did you mean" not in str(caught[0].message)


@pytest.mark.parametrize(
    "options",
    [
        {"source_key": "shelf"},
        {"source_key": ("missing", "shelf")},
        {"position_key": "verse"},
        {"position_key": ("verse", "line")},
        {"source_key": lambda chunk: None},
        {"position_key": lambda chunk: chunk.rank},
    ],
)
def test_a_key_of_some_chunks_is_not_misspelt(options):
    chunks = documents(
        {"source": "a", "shelf": "s", "verse": 1, "line": 2}, {"source": "a", "chunk_index": 3}, {"source": "b"}
    )
    assert len(build_context(chunks, order="rank", **options).kept) == 3


def test_one_chunk_needs_no_key():
    assert len(build_context(documents({"source": "a"}), source_key="x", position_key="y").kept) == 1


def test_several_position_keys_are_all_needed():
    chunks = documents({"source": "a", "verse": 2}, {"source": "a", "verse": 1})
    with pytest.warns(PositionWarning, match="position_key='lines': no chunk has this metadata key"):
        build_context(chunks, order="rank", position_key=("verse", "lines"))


def test_a_misspelt_key_is_warned_about_where_positions_are_stamped_and_found():
    with pytest.warns(SourceWarning, match="did you mean 'book'"):
        stamp_positions([Document("text", metadata={"source": "a", "book": "b"})], source_key="bok")


def test_names_as_long_as_documents_are_no_parts():
    fitting, long = ([f"{'x' * length}.pdf-{number}" for number in range(3)] for length in (100, 2_000))
    assert names_of_parts(fitting) == fitting
    assert names_of_parts(long) == []
