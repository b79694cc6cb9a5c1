import re

import pytest

from oprag.compare.report.charts import forest_marks, paint
from oprag.compare.stats.difference import Difference


def row(mean, low, high, *, p=1.0, pooled=False):
    return (
        Difference(n=20, mean=mean, low=low, high=high, unpaired=0, p_value=p, units=20, differing=9, adjusted_p=p),
        pooled,
    )


def test_intervals_of_all_rows_are_on_one_scale_that_contains_zero():
    rows, axis = forest_marks([row(0.1, 0.05, 0.2), row(-0.2, -0.3, -0.1, p=0.01, pooled=True)])
    numbers = [(float(text), float(x)) for x, text in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', axis)]
    assert [value for value, _ in numbers] == [-0.4, -0.2, 0.0, 0.2]
    (low, start), *_, (high, end) = numbers

    def value(place):
        return low + (float(place) - start) / (end - start) * (high - low)

    for svg, wanted in zip(rows, ((0.05, 0.2), (-0.3, -0.1)), strict=True):
        (ends,) = re.findall(r"M([\d.]+) 12H([\d.]+)", svg)
        assert [value(place) for place in ends] == pytest.approx(wanted, abs=0.002)
    # Filled where it is shown, and only there.
    assert f'fill="{paint("1")}"' in rows[1]
    assert f'fill="{paint("page")}"' in rows[0]


def test_without_an_interval_there_is_a_mean_or_nothing():
    rows, _ = forest_marks([row(0.1, None, None), row(None, None, None)])
    assert [svg.count("12H") for svg in rows] == [0, 0]
    assert rows[0].count("<path") == rows[1].count("<path") + 1


def test_rows_say_nothing_that_their_table_does_not():
    rows, axis = forest_marks([row(0.0, -0.1, 0.1)])
    assert all('aria-hidden="true"' in svg for svg in (*rows, axis))
