import pytest

from oprag.cli.show import money, safe


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\nlines\tand a tab",
        "no\u00a0break",
        "soft\u00adhyphen",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "wide\u3000space",
        "\U0001f468\u200d\U0001f469",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text):
    assert safe(text) == text


def test_line_ends_of_windows_are_line_ends():
    assert safe("one\r\ntwo\r\n") == "one\ntwo\n"


@pytest.mark.parametrize("letter", ["\x1b", "\x07", "\x9b", "\x7f", "\r", "\u202e", "\u2066", "\ud83d"])
def test_what_a_terminal_would_obey_is_a_mark(letter):
    assert safe(f"a{letter}b") == "a\ufffdb"


@pytest.mark.parametrize(
    ("amount", "shown"), [(0.0, "0.00"), (1234.5, "1,234.50"), (0.25, "0.25"), (0.00432, "0.0043"), (0.1, "0.10")]
)
def test_small_amounts_of_money_are_no_nothing(amount, shown):
    assert money(amount) == shown
