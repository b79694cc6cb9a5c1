import tomllib
from datetime import UTC, date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.profile import key_text, value_text

TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('\n\r\t\\"\x00\x1f\x7f\x85\u2028abn')))
VALUES = st.recursive(
    st.one_of(
        TEXTS,
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.dates(),
        st.times(),
        st.datetimes(timezones=st.sampled_from([None, UTC])),
    ),
    lambda values: st.lists(values, max_size=4),
    max_leaves=6,
)


@given(key=TEXTS, value=VALUES)
def test_what_is_written_is_what_is_read(key, value):
    assert tomllib.loads(f"{key_text(key)} = {value_text(value)}\n") == {key: value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (12, "12"),
        (0.1, "0.1"),
        (float("-inf"), "-inf"),
        ("\n\n", r'"\n\n"'),
        ('say "a"\nor b\n', '"""\nsay "a"\nor b\n"""'),
        ('"""\nb', '"""\n\\"\\"\\"\nb"""'),
        ('a\n"b"', '"""\na\n\\"b\\""""'),
        (r"C:\new" + "\nline", '"""\nC:\\\\new\nline"""'),
        (("a", 'b"'), r'["a", "b\""]'),
        (date(2026, 3, 1), "2026-03-01"),
        (time(7, 30), "07:30:00"),
        (datetime(2026, 3, 1, 7, 30, tzinfo=UTC), "2026-03-01T07:30:00+00:00"),
    ],
)
def test_values_are_shown_as_a_reader_would_write_them(value, text):
    assert value_text(value) == text
    assert tomllib.loads(f"key = {text}")["key"] == (list(value) if isinstance(value, tuple) else value)


def test_half_a_character_is_refused():
    with pytest.raises(OptionError, match="half a character"):
        value_text("a \ud800")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**16_000], ids=["over", "under", "huge"])
def test_integers_that_toml_does_not_have_are_refused(value):
    with pytest.raises(OptionError, match="more than 64 bits"):
        value_text([value])
