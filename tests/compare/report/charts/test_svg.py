import pytest

from oprag.compare.report.charts.svg import pixels


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (3.14159, "3.1"), (-0.04, "0"), (-2.06, "-2.1"), (1e6, "1000000")]
)
def test_pixels_have_at_most_one_decimal(value, text):
    assert pixels(value) == text
