import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk
from oprag.cli.document_map import as_svg, map_of
from tests.cli.document_map.helpers import chunk, context_of

NS = {"svg": "http://www.w3.org/2000/svg"}


def drawn(*chunks, lengths=None, question="What?", **options):
    return as_svg(map_of(context_of(*chunks, **options), lengths or {"book": 1000}), question)


def parsed(svg):
    return ET.fromstring(svg)


def marks(svg):
    """The marks with tooltips, by the first line of the tooltip."""
    found = {}
    for rect in parsed(svg).iterfind(".//svg:rect", NS):
        title = rect.find("svg:title", NS)
        if title is not None:
            found[(title.text or "").split("\n")[0]] = rect
    return found


def test_each_chunk_is_a_mark_that_says_what_it_is():
    best = chunk(0, 100, 200, score=1.5, similarity=0.25)
    svg = drawn(best, chunk(1, 500, 510), chunk(2, 0, 50), k=1, max_candidates=2)
    found = marks(svg)
    assert set(found) == {
        "rank 0, kept",
        "rank 1, dropped by k (behind the first 1)",
        "rank 2, dropped by max_candidates (behind the first 2)",
    }
    title = found["rank 0, kept"].findtext("svg:title", "", NS)
    assert "score 1.500, similarity 0.250, characters 100–200" in title
    assert best.text in title


def test_marks_stand_where_the_chunks_stand_and_each_state_in_its_lane():
    found = marks(drawn(chunk(0, 500, 600), chunk(1, 0, 100), k=1))
    kept, dropped = found["rank 0, kept"], found["rank 1, dropped by k (behind the first 1)"]
    wide = float(kept.get("width", 0))
    assert wide == pytest.approx(float(dropped.get("width", 0)), abs=0.02)
    assert float(kept.get("x", 0)) - float(dropped.get("x", 0)) == pytest.approx(5 * wide, abs=0.1)
    assert float(kept.get("y", 0)) + float(kept.get("height", 0)) <= float(dropped.get("y", 0))
    assert kept.get("class") != dropped.get("class")


def test_a_mark_is_wide_enough_to_be_seen_and_stays_on_its_line():
    found = marks(drawn(chunk(0, 999_990, 1_000_000), lengths={"book": 1_000_000}))
    line = next(rect for rect in parsed(drawn()).iterfind(".//svg:rect", NS) if rect.get("class") == "line")
    (mark,) = found.values()
    end = float(mark.get("x", 0)) + float(mark.get("width", 0))
    assert float(mark.get("width", 0)) >= 1
    assert end <= float(line.get("x", 0)) + float(line.get("width", 0)) + 0.01


def test_pages_have_borders_and_marks_name_them():
    svg = drawn(chunk(0, 5, 30, page=2), lengths={"book": [50, 50, 50]})
    assert len(parsed(svg).findall(".//svg:line", NS)) == 2
    assert "page 2, characters 5–30" in svg
    assert ">page 3</text>" in svg
    assert not parsed(drawn(lengths={"book": [5] * 1000})).findall(".//svg:line", NS)


def test_it_can_be_read_aloud():
    root = parsed(drawn(chunk(0, 100, 200), chunk(1, 5, 20), k=1, question="Where is it?"))
    assert root.get("role") == "img"
    ids = {element.get("id") for element in root if element.get("id")}
    assert set((root.get("aria-labelledby") or "").split()) == ids
    assert "Where is it?" in root.findtext("svg:title", "", NS)
    description = root.findtext("svg:desc", "", NS)
    assert "kept: 1 chunk. dropped by k: 1 chunk." in description
    assert "book: kept are characters 100–200" in description


def test_the_legend_counts_and_says_what_has_no_place():
    texts = [
        text.text for text in parsed(drawn(chunk(0, 0, 20), chunk(1, 5000, 5020), k=2)).iterfind(".//svg:text", NS)
    ]
    assert "kept: 2 chunks" in texts
    assert "not retrieved" in texts
    assert "1 retrieved chunks have no place in these documents" in texts


def test_light_and_dark_and_nothing_from_elsewhere():
    svg = drawn(chunk(0, 0, 20), chunk(1, 30, 50), k=1)
    light, dark = svg.split("@media (prefers-color-scheme:dark)")
    for number in (0, 1):
        assert len({re.search(rf"\.s{number}{{fill:(#\w+)}}", style)[1] for style in (light, dark)}) == 2  # type: ignore[index]
    assert re.findall(r"https?://[^\"\s]+", svg) == ["http://www.w3.org/2000/svg"]
    assert "<script" not in svg


@pytest.mark.parametrize("text", ["</title><script>alert(1)</script>", "\x00\x1b[31m\ud83d\ufffe", "a & b < \"c\" 'd'"])
def test_text_of_documents_is_escaped(text):
    given_chunk = Chunk(text, 0, metadata={"source": text, "start_index": 0})
    svg = as_svg(map_of(context_of(given_chunk), {text: 100}), text)
    root = parsed(svg.encode("utf-8", "replace"))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        *("svg", "title", "desc", "style", "rect", "text", "tspan", "line"),
    }


@given(st.text(min_size=1))
def test_any_question_makes_a_picture(question):
    parsed(drawn(question=question).encode("utf-8", "replace"))


def test_several_maps_stand_in_one_page_and_leave_the_page_its_style():
    one, other = drawn(chunk(0, 0, 20)), drawn(chunk(0, 0, 30), question="And then?")
    ids = [element.get("id") for svg in (one, other) for element in parsed(svg).iter() if element.get("id")]
    assert len(ids) == len(set(ids)) == 4
    style = parsed(one).findtext("svg:style", "", NS).replace("@media (prefers-color-scheme:dark){", "")
    rules = [rule for rule in style.rstrip("}").split("}") if rule]
    assert len(rules) > 10
    assert all(rule.startswith(f".{parsed(one).get('class')} ") for rule in rules)
