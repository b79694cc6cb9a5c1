"""Options as values that JSON can hold, without those that are functions, and back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from oprag.errors import SerializationWarning

__all__ = ["LEFT_OUT", "loaded", "without_functions"]

LEFT_OUT = "left_out"


def without_functions(data: Mapping[str, Any], functions: Iterable[str]) -> dict[str, Any]:
    """The options but for functions, whose names are kept."""
    names = list(functions)
    kept = {name: value for name, value in data.items() if name not in names}
    return kept | ({LEFT_OUT: names} if names else {})


def loaded(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Saved options as keywords for a constructor; warns of functions that were left out and are not given now."""
    options = {**data, **given}
    options.pop("class_name", None)
    missing = [name for name in options.pop(LEFT_OUT, []) if name not in given]
    if missing:
        warnings.warn(
            "these options were functions or parts and were not saved, so they have their defaults: "
            f"{', '.join(missing)}; give them to from_dict as keywords",
            SerializationWarning,
            stacklevel=3,
        )
    # JSON has no tuples.
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
