"""What documents, questions, models and errors say is shown as text, whatever it is."""

import pytest

pytest.importorskip("jinja2")

from oprag._internal.text_table import safe
from oprag.compare import DataSet, Evidence, Question, write_report
from oprag.compare.providers.specs import ModelSpec
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
    ).replace(models={f"m {TEXT}": ModelSpec(fails, TEXT)}, data={f"set {TEXT}": data})
    run(wanted, folder / "r.db")
    return page_of(write_report(folder / "r.db", folder / "r.html")), (folder / "r.html").read_bytes()


def test_nothing_of_it_is_an_element_an_attribute_or_an_address(page):
    page, _ = page
    assert len(page.root.all("script")) == len(page.root.all("style")) == 1
    tags = {node.tag for node in page.root.all()}
    assert tags.isdisjoint({"b", "iframe", "object"})
    for node in page.root.all():
        names = set(node.attributes)
        assert not any(name.startswith("on") for name in names)
        assert names.isdisjoint({"style", "action", "formaction", "xlink:href"})
        assert ("src" in names) == (node.tag == "img")
        assert node.attributes.get("href", "#").startswith("#")


def test_it_is_shown_as_it_is(page):
    page, _ = page
    text = page.root.raw
    for one in EVIL:
        assert safe(one).strip("`") in text
    assert "1337" not in text
    questions = page.section("questions").text
    for part in ("Question 0:", "Answer \ufffd", "No answer. ValueError:", "(correct)"):
        assert part in questions
    assert page.root.all("h1")[0].text == safe(f"Results of small {TEXT}")
