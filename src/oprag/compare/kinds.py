"""Which framework an object is of, without importing any."""

from __future__ import annotations

from typing import Any

__all__ = ["descends"]


def descends(given: Any, package: str, *names: str) -> bool:
    """Whether an object is of a class, or of one derived from it.

    Args:
        given: The object; a class is none.
        package: The package that the class comes from, such as "langchain_core".
        names: The class, or several.
    """
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )
