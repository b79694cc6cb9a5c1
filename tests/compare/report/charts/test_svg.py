import xml.etree.ElementTree as ET

import pytest

from oprag.compare.report.charts.svg import picture, pixels


def drawn(*, body=("<g/>",), title="A title", description="What is to be seen.", **options):
    return picture(body, title=title, description=description, width=10, height=20, kind="some", **options)


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (3.14159, "3.1"), (-0.04, "0"), (-2.06, "-2.1"), (1e6, "1000000")]
)
def test_pixels_have_at_most_one_decimal(value, text):
    assert pixels(value) == text


def test_a_picture_names_itself():
    root = ET.fromstring(drawn(attributes='font-size="12"'))
    assert (root.get("viewBox"), root.get("width"), root.get("height")) == ("0 0 10 20", "10", "20")
    assert (root.get("role"), root.get("class"), root.get("font-size")) == ("img", "some", "12")
    title, description = root[0], root[1]
    assert (title.text, description.text) == ("A title", "What is to be seen.")
    assert (root.get("aria-labelledby") or "").split() == [title.get("id"), description.get("id")]


def test_ids_come_from_the_content():
    others = [drawn(body=["<a/>"]), drawn(title="Another"), drawn(description="More.")]
    ids = [ET.fromstring(svg)[0].get("id") for svg in [drawn(), *others]]
    assert len(set(ids)) == 4
    assert drawn() == drawn()
