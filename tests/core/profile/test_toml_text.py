import tomllib
from datetime import UTC, date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.profile import Profile, read_profile, write_profile

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


def written(about, folder):
    write_profile(Profile(about=about), folder / "oprag.toml")
    return (folder / "oprag.toml").read_bytes().decode()


@given(key=TEXTS, value=VALUES)
def test_what_is_written_is_what_is_read(key, value, tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    text = written({key: value}, folder)
    assert tomllib.loads(text)["about"] == {key: value}
    assert read_profile(folder / "oprag.toml").about == {key: value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (12, "12"),
        (0.1, "0.1"),
        (float("-inf"), "-inf"),
        ("\n\n", r'"\n\n"'),
        ('say "a"\nor b\n', '"""\nsay \\"a\\"\nor b\n"""'),
        ('"""\nb', '"""\n\\"\\"\\"\nb"""'),
        ('a\n"b"', '"""\na\n\\"b\\""""'),
        (r"C:\new" + "\nline", '"""\nC:\\\\new\nline"""'),
        (("a", 'b"'), '[\n    "a",\n    "b\\"",\n]'),
        (date(2026, 3, 1), "2026-03-01"),
        (time(7, 30), "07:30:00"),
        (datetime(2026, 3, 1, 7, 30, tzinfo=UTC), "2026-03-01 07:30:00+00:00"),
    ],
)
def test_values_are_shown_as_a_reader_would_write_them(value, text, tmp_path):
    assert written({"key": value}, tmp_path).endswith(f"key = {text}\n")
    assert read_profile(tmp_path / "oprag.toml").about["key"] == (list(value) if isinstance(value, tuple) else value)


@pytest.mark.parametrize("text", ["one\r\ntwo", "one\rtwo\n", "a\x7f\nb"])
def test_line_breaks_and_controls_stay_what_they_are(text, tmp_path):
    written({"key": text}, tmp_path)
    assert read_profile(tmp_path / "oprag.toml").about["key"] == text


def test_half_a_character_is_refused(tmp_path):
    with pytest.raises(OptionError, match="lone surrogate"):
        written({"key": "a \ud800"}, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**16_000], ids=["over", "under", "huge"])
def test_integers_that_toml_does_not_have_are_refused(value, tmp_path):
    with pytest.raises(OptionError, match="more than 64 bits"):
        written({"key": [value]}, tmp_path)
