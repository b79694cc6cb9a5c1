"""How values are written."""

import pytest

from oprag.compare.analysis.settings import money_text


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "–"),
        (0.0, "0.00"),
        (1234.5, "1,234.50"),
        (0.25, "0.25"),
        (0.1, "0.10"),
        (0.00432, "0.0043"),
        (0.000012, "0.000012"),
    ],
)
def test_small_amounts_of_money_are_no_nothing(amount, shown):
    assert money_text(amount) == shown
