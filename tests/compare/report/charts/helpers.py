"""Reading charts as somebody would who has nothing but the picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from math import log10

NS = {"svg": "http://www.w3.org/2000/svg"}

Element = ET.Element
Axis = list[tuple[float, float]]
"""Values and where they stand."""


def parsed(svg: str) -> Element:
    return ET.fromstring(svg.encode("utf-8", "replace"))


def number_of(text: str) -> float:
    """The number that a label says."""
    return float(text.replace(",", ""))


def by_class(root: Element, name: str) -> list[Element]:
    return [element for element in root.iter() if element.get("class") == name]


def labels(root: Element, name: str) -> list[str]:
    """The texts of the numbers of an axis, "x" or "y"."""
    return [text.text or "" for group in by_class(root, f"oprag-{name}") for text in group.findall("svg:text", NS)]


def texts(root: Element) -> list[str]:
    return [text.text or "" for text in root.iterfind(".//svg:text", NS)]


def axes(root: Element) -> tuple[Axis, Axis]:
    """What the numbers on the axes say, and where their grid lines are; of the last area."""
    path = by_class(root, "oprag-grid")[-1].get("d") or ""
    upright = [float(match[1]) for match in re.finditer(r"M([-\d.]+) [-\d.]+V", path)]
    level = [float(match[1]) for match in re.finditer(r"M[-\d.]+ ([-\d.]+)H", path)]
    x = list(zip(map(number_of, labels(root, "x")), upright, strict=True))
    y = list(zip(map(number_of, labels(root, "y")[-len(level) :]), level, strict=True))
    return x, y


def value_at(axis: Axis, place: float, *, logarithmic: bool = False) -> float:
    """The value that stands there, read between the first and the last number of the axis."""
    (low, start), (high, end) = axis[0], axis[-1]
    if logarithmic:
        low, high = log10(low), log10(high)
    value = low + (place - start) / (end - start) * (high - low)
    return 10**value if logarithmic else value


def points(element: Element) -> list[tuple[float, float]]:
    """Where the points of a path are, from its absolute coordinates."""
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", element.get("d") or "")]


def marked(root: Element) -> dict[str, tuple[float, float]]:
    """Where the points with a tooltip are, by the tooltip."""
    return {
        path.findtext("svg:title", "", NS): points(path)[0]
        for group in by_class(root, "oprag-points")
        for path in group.findall("svg:path", NS)
        if path.find("svg:title", NS) is not None
    }


def places(root: Element) -> Iterator[tuple[float, float]]:
    """Every coordinate that is drawn."""
    for element in root.iter():
        if element.get("d"):
            yield from points(element)
        for x, y in (("x", "y"), ("cx", "cy")):
            if element.get(x) or element.get(y):
                yield float(element.get(x, 0)), float(element.get(y, 0))


def size(root: Element) -> tuple[float, float]:
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    return width, height
