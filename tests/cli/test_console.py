import pytest

from oprag.cli.console import money


@pytest.mark.parametrize(
    ("amount", "shown"), [(0.0, "0.00"), (1234.5, "1,234.50"), (0.25, "0.25"), (0.00432, "0.0043"), (0.1, "0.10")]
)
def test_small_amounts_of_money_are_no_nothing(amount, shown):
    assert money(amount) == shown
