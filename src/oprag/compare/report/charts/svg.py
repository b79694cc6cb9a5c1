"""What every picture in SVG needs: short numbers and alternative text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from oprag.text_table import escaped

__all__ = ["picture", "pixels"]


def pixels(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def picture(
    body: Iterable[str], *, title: str, description: str, width: float, height: float, kind: str, attributes: str = ""
) -> str:
    """A whole picture that stands alone as a file or within a page.

    Its ids come from its content, so that several pictures can stand in one page and equal input gives equal output.

    Args:
        body: The elements.
        title: What it shows, as alternative text.
        description: What is to be seen, for who cannot see it.
        width: Its width in pixels of the drawing.
        height: Its height.
        kind: The class of the root, by which a page can style it.
        attributes: Other attributes of the root, as XML.
    """
    body = "\n".join(body)
    mark = hashlib.sha256("\0".join([title, description, body]).encode("utf-8", "replace")).hexdigest()[:12]
    size = f"{pixels(width)} {pixels(height)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {size}" width="{pixels(width)}"'
        f' height="{pixels(height)}" role="img" aria-labelledby="{kind}-{mark}-t {kind}-{mark}-d"'
        f"{attributes and f' {attributes}'}>\n"
        f'<title id="{kind}-{mark}-t">{escaped(title)}</title>\n'
        f'<desc id="{kind}-{mark}-d">{escaped(description)}</desc>\n'
        f"{body}\n</svg>\n"
    )
