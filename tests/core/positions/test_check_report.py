"""How a check is shown: a table, JSON, and the ids of a source."""

import json
import re
import warnings

import pytest

from oprag import Chunk
from oprag.chunk import changed
from oprag.errors import OptionError, SourceWarning
from tests.core.positions.test_check import check, cut, located, only
from tests.helpers import hit


def test_the_worst_sources_come_first():
    chunks = [
        *located(cut()),
        *(hit(text, 0, source="pages", page=rank // 2) for rank, text in enumerate("abcd")),
        *(hit(text, 0, source="nothing") for text in "abcde"),
    ]
    assert [source.source for source in check(chunks).sources] == ["nothing", "pages", "book"]


def test_a_table_shows_what_there_is_to_say():
    text = str(check([*cut(), *(hit(one, 0, source="fine", page=page) for page, one in enumerate("ab"))]))
    assert text.splitlines()[2].split("  ")[-1] == "duplicates"
    assert re.search(rf"^  !  book +{len(cut())} +kind 7, none +unknown$", text, re.MULTILINE)
    assert re.search(r"^     fine +2 +kind 5, page or number: page +known$", text, re.MULTILINE)
    problem = "chunks of a source have no position, so their order is unknown (book)"
    assert f"Problem: {problem}\n    write_positions(store, read_source=documents)" in text


def test_a_problem_of_many_sources_is_told_once():
    chunks = [hit(f"{name} {text}", 0, source=f"source {name}") for name in range(30) for text in "ab"]
    text = str(check(chunks))
    assert text.count("Problem: ") == 1
    assert "(source 0 and 29 more sources)" in text
    assert "and 10 more sources\n" in text
    assert sum(line.startswith("  !") for line in text.splitlines()) == 20


def test_json_has_everything_but_the_ids():
    found = check([changed(chunk, id=str(chunk.rank)) for chunk in cut()])
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["ok"] is False
    assert told["sources"][0] == {
        "source": "book",
        "chunks": len(cut()),
        "kind": "none",
        "field": "",
        "certainty": "unknown",
        "missing": len(cut()),
        "duplicates": 0,
        "problem": only(found).problem,
        "suggestion": "write_positions(store, read_source=documents)",
    }
    assert found.ids("book") == [str(number) for number in range(len(cut()))]


@pytest.mark.parametrize("name", ["none", None, 7])
def test_ids_of_an_unknown_source_are_refused(name):
    message = f"the check found no source {name!r}; check.sources contains all"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$") as error:
        check(cut()).ids(name)
    assert error.value.value == name


def test_keys_in_names_are_masked():
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    names = [f"https://a.example/{'x' * 30}?api_key={key}", f"{'y' * 28} {key}", key]
    chunks = [hit(text, 0, source=name) for name in names for text in "ab"]
    found = check(chunks, store="Store")
    sampled = check([*chunks, *chunks[-2:]], max_chunks=5)
    for shown in (
        str(found),
        repr(found),
        repr(found.sources),
        json.dumps(found.to_dict()),
        str(sampled),
    ):
        assert "abcdefgh" not in shown
        assert "sk-proj" not in shown


HOSTILE = [
    None,
    "",
    " ",
    "\ud800",
    "a\x1b[31mb\nc",
    {"a": 1},
    [1],
    float("nan"),
    -1,
    True,
    10**400,
    "9" * 500,
    b"x",
    object(),
]


@pytest.mark.parametrize("store", ["", "Store"])
@pytest.mark.parametrize(
    "key", ["source", "chunk_index", "start_index", "page", "page_label", "chunk_numbering", "row", "title"]
)
def test_whatever_metadata_hold_is_shown(key, store):
    chunks = [
        Chunk(f"text {rank}", rank, metadata={"source": "book", key: value}) for rank, value in enumerate(HOSTILE * 2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceWarning)
        found = check(chunks, store=store)
    shown = str(found) + json.dumps(found.to_dict())
    shown.encode()
    assert "\x1b" not in shown
