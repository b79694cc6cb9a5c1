"""What documents, questions, models and errors say is shown as text, whatever it is."""

import re

import pytest

pytest.importorskip("jinja2")

from oprag.compare import DataSet, Evidence, Question, write_report
from oprag.compare.providers.model import ModelSpec
from oprag.compare.report.page import Heading, Section, clean, render
from oprag.compare.running.run import run
from tests.compare.helpers import experiment
from tests.compare.report.parsed import page_of

EVIL = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)//",
    "</style><style>*{display:none}</style>",
    '"><img src=x onerror=alert(3)>',
    "'onmouseover='alert(4)",
    "javascript:alert(5)",
    "<!-- <svg onload=alert(6)> -->",
    "]]></title></desc></svg><svg/onload=alert(7)>",
    "{{ 7 * 191 }}{% raw %}",
    "`<b>bold</b>`",
    "&lt;script&gt;",
    "\u202egnissim\u2066 \x00\x1b[31m\x85",
]
TEXT = " ".join(EVIL)
LONE = "\ud800"


def fails(prompt):
    if "Question 2" in prompt:
        raise ValueError(TEXT)
    return TEXT if "Question 0" in prompt else f"{TEXT} unanswerable"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    document = f"{TEXT} {LONE} " * 6
    name = f"book {TEXT}"
    questions = tuple(
        Question(
            id=f"{number} {TEXT}",
            text=f"Question {number}: {TEXT}{LONE}",
            documents=(name,),
            answers=(TEXT, f"Answer {LONE}"),
            choices=(TEXT, "no"),
            right_choice=0,
            evidence=(Evidence(name, 0, 5),),
            about={TEXT: TEXT},
        )
        for number in range(3)
    )
    data = DataSet(name=f"set {TEXT}", documents={name: document}, questions=questions)
    wanted = experiment(
        grid=[
            {"order": ["source", "rank"], "k": [1, 2], "chunk_size": 40, "separator": ["\n", TEXT]},
            {"method": ["self_route", "long_context"], "k": 2, "chunk_size": 40, "overflow": "truncate_end"},
        ],
        data=data,
        name=f"small {TEXT}",
    ).replace(
        models={f"m {TEXT}": ModelSpec(fails, TEXT)},
        data={f"set {TEXT}": data},
    )
    run(wanted, folder / "r.db")
    return page_of(write_report(folder / "r.db", folder / "r.html", documents=wanted)), (folder / "r.html").read_bytes()


def test_nothing_of_it_is_an_element_an_attribute_or_an_address(page):
    page, _ = page
    assert len(page.root.all("script")) == len(page.root.all("style")) == 1
    tags = {node.tag for node in page.root.all()}
    assert tags.isdisjoint({"img", "b", "iframe", "object"})
    for node in page.root.all():
        names = set(node.attributes)
        assert not any(name.startswith("on") for name in names)
        assert names.isdisjoint({"src", "style", "action", "formaction", "xlink:href"})
        assert node.attributes.get("href", "#").startswith("#")


def test_it_is_shown_as_it_is(page):
    page, _ = page
    text = page.root.raw
    for one in EVIL:
        assert clean(one).strip("`") in text
    assert "1337" not in text
    questions = page.section("questions").text
    for part in ("Question 0:", "Answer \ufffd", "No answer. ValueError:", "(correct)"):
        assert part in questions
    assert page.root.all("h1")[0].text == clean(f"Results of small {TEXT}")


def test_pictures_hold_it_as_text(page):
    page, _ = page
    svgs = page.root.all("svg")
    assert len(svgs) > 3
    for svg in svgs:
        assert {node.tag for node in svg.all()} <= {
            *("title", "desc", "g", "path", "rect", "line", "circle", "text", "tspan", "polygon", "polyline"),
        }
    assert any("<script>" in svg.raw for svg in svgs)


def test_nothing_turns_the_direction_around_or_cannot_be_written(page):
    _, data = page
    text = data.decode()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", text)


@pytest.mark.parametrize("text", EVIL)
def test_one_function_cleans_and_every_template_escapes(text):
    html = render("section.html", section=Section(text, text, [Heading(text)]))
    assert html.count("<") == 2 + 2 + 2
    assert "onerror" not in re.sub(r'"[^"]*"|>[^<]*<', "", html)


def test_cleaning_leaves_what_people_write():
    text = "Ünïcödé, 漢字, עברית \u200f, emoji 👩‍👩‍👧, tab\tand\nline\r\n"
    assert clean(text) == text
    assert clean(7) == 7
    assert clean(f"a{LONE}b\u202ec\x00") == "a\ufffdb\ufffdc\ufffd"
