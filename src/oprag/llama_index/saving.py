"""Save options as JSON values, without functions and objects, and load them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from oprag.errors import SerializationWarning

__all__ = ["LEFT_OUT", "loaded", "without_functions"]

LEFT_OUT = "left_out"


def without_functions(data: Mapping[str, Any], functions: Iterable[str]) -> dict[str, Any]:
    """The options without functions and objects, whose names are listed under "left_out"."""
    names = list(functions)
    kept = {name: value for name, value in data.items() if name not in names}
    return kept | ({LEFT_OUT: names} if names else {})


def loaded(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords for a constructor from saved options; warns about omitted options that are not passed now."""
    options = {**data, **given}
    options.pop("class_name", None)
    missing = [name for name in options.pop(LEFT_OUT, []) if name not in given]
    if missing:
        warnings.warn(
            "these options are functions or objects, which are not saved, so their defaults are used: "
            f"{', '.join(missing)}; pass them to from_dict as keywords",
            SerializationWarning,
            stacklevel=3,
        )
    # JSON has no tuples.
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
