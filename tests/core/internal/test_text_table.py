import xml.etree.ElementTree as ET

from oprag._internal.text_table import escaped, shortened


def test_shortened_text_is_at_most_so_long_and_says_that_it_goes_on():
    assert shortened("order", 5) == "order"
    assert shortened("orders", 5) == "orde…"


def test_text_is_escaped_and_xml_can_hold_it():
    hostile = "<b a=\"1\" b='2'>&\x00\x1b\u202e\ud800\ufffe"
    safe = escaped(hostile)
    root = ET.fromstring(f'<a b="{safe}">{safe}</a>')
    assert root.text == root.get("b") == "<b a=\"1\" b='2'>&" + "\ufffd" * 5
