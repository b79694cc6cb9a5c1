"""Functions by their names, MODULE:FUNCTION, as experiment files have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from oprag.errors import ExperimentError, OpragError
from oprag.masking import reason

__all__ = ["function_named", "made_by", "no_function", "required_function"]


def function_named(name: str, providers: Collection[str] = ()) -> Callable[..., Any] | None:
    """The function that a name means; None where there is no such module, or it has no such function.

    Names of providers and models look the same, so a name that means no function is no error. Looking for a module
    imports its parents: only for names that the user typed or trusts.

    Args:
        name: MODULE:FUNCTION; the module must be found where Python looks for modules.
        providers: Names before the colon that are never modules.

    Raises:
        ExperimentError: There is the module, and it cannot be imported.
    """
    module, _, function = name.partition(":")
    if module in providers or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        return None
    try:
        # What is imported already need not be found again: that may be impossible, as for the program itself.
        if module not in sys.modules and find_spec(module) is None:
            return None
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise ExperimentError(f"{name!r}: the module cannot be imported: {reason(error)}", name) from error
    except Exception as error:
        raise ExperimentError(f"{name!r}: the module cannot be imported: {reason(error)}", name) from error
    for part in function.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def no_function(name: Any, providers: Collection[str] = ()) -> str:
    """What to add to the message that there is no such model, for a name that looks like that of a function."""
    module, _, function = str(name).partition(":")
    if module in providers or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        return ""
    if module in sys.modules:
        return f"; nor has the module {module!r} a function {function!r}"
    return "; nor does Python find such a function (is the folder of its module in PYTHONPATH?)"


def required_function(name: str) -> Callable[..., Any]:
    """The function that a name means.

    Args:
        name: MODULE:FUNCTION.

    Raises:
        ExperimentError: There is none.
    """
    function = function_named(name)
    if function is None:
        raise ExperimentError(
            f"{name!r}: Python finds no such function; give MODULE:FUNCTION, and put the folder of the module into "
            "PYTHONPATH",
            name,
        )
    return function


def made_by(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """What a function of the user's own makes.

    Args:
        name: The name that it was given by, for the message.
        function: The function.
        settings: Its arguments.

    Raises:
        ExperimentError: It raises.
    """
    try:
        return function(**settings)
    except OpragError:
        raise
    except Exception as error:
        raise ExperimentError(f"{name!r} raises {type(error).__name__}: {reason(error)}", name) from error
