"""Colours, measured by the formulas of their standards."""

from itertools import combinations

import pytest

from oprag.compare.report.charts import COLOURS, MAX_NAMED, look

# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0: what people see who lack one kind of cones.
SIGHTS = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE = (0.95047, 1.0, 1.08883)


def linear(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def contrast(one, other):
    """WCAG 2.2, 1.4.3."""
    dark, bright = sorted(times(TO_XYZ, linear(colour))[1] for colour in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def lab(light):
    """CIELAB."""
    parts = [value / white for value, white in zip(times(TO_XYZ, light), WHITE, strict=True)]
    x, y, z = (part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116 for part in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def mixed(one, other, part):
    """A colour over another one."""
    pairs = [(int(one[n : n + 2], 16), int(other[n : n + 2], 16)) for n in (1, 3, 5)]
    return "#" + "".join(f"{round(a * part + b * (1 - part)):02x}" for a, b in pairs)


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_stand_out_from_the_page(theme):
    page = COLOURS["page"][theme]
    for name in "123456":
        assert contrast(COLOURS[name][theme], page) >= 3, name
    for name in ("ink", "quiet"):
        assert contrast(COLOURS[name][theme], page) >= 4.5, name


@pytest.mark.parametrize("theme", [0, 1])
def test_text_on_the_darkest_cell_of_a_table_can_be_read(theme):
    strongest = mixed(COLOURS["1"][theme], COLOURS["page"][theme], 0.4)  # .h10 of the style
    assert contrast(COLOURS["ink"][theme], strongest) >= 4.5


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_are_told_apart_with_any_sight(theme, sight):
    seen = {
        name: lab([min(1.0, max(0.0, part)) for part in times(SIGHTS[sight], linear(COLOURS[name][theme]))])
        for name in "123456"
    }
    for one, other in combinations(seen, 2):
        apart = sum((a - b) ** 2 for a, b in zip(seen[one], seen[other], strict=True)) ** 0.5
        assert apart >= 20, (one, other)


def test_looks_are_told_apart():
    looks = [look(number) for number in range(MAX_NAMED)]
    assert len({(shown.dash, shown.shape) for shown in looks}) == MAX_NAMED  # lines, without any colour
    assert len({(shown.colour, shown.shape) for shown in looks}) == MAX_NAMED  # dots
