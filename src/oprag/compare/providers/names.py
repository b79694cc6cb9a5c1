"""Names of providers, functions and token counters in experiments and on the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from oprag._internal.masking import describe
from oprag._internal.tokenizers import COUNTERS, LOCAL, Counter, counter_named
from oprag._internal.tokens import approximate_tokens
from oprag.errors import ExperimentError

__all__ = [
    "LOCAL",
    "client_settings",
    "counter_of",
    "is_instance",
    "is_loopback",
    "main_module",
    "module_of",
    "qualified_name",
    "set_main_module",
]

_main: str | None = None


def set_main_module(name: str) -> None:
    """Set the name of `__main__` in a worker, whose own `__main__` is not the script that the classes come from."""
    global _main  # noqa: PLW0603 - once per process
    _main = name


def main_module() -> str:
    """The name under which `__main__` can be imported; "__main__" if it cannot, as in a notebook."""
    if _main is not None:
        return _main
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m NAME
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return "__main__" if file is None else Path(file).stem


def module_of(value: Any) -> str:
    """The module of a class or function, the same if it is run as a script and if it is imported."""
    return main_module() if value.__module__ == "__main__" else str(value.__module__)


def qualified_name(function: Any, what: str) -> str:
    """MODULE:FUNCTION of a function, or MODULE:CLASS of an object; the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    if "<lambda>" in named.__qualname__:
        raise ExperimentError(f"{what} is a lambda; use a named function: results are stored by name", function)
    return f"{module_of(named)}:{named.__qualname__}"


def counter_of(given: Any) -> Counter:
    """A token counter, from a name in `oprag._internal.tokenizers` or from a function."""
    if isinstance(given, Counter):
        return given
    if given is approximate_tokens:
        given = "approximate"
    if isinstance(given, str):
        return counter_named(given)
    if not callable(given) or isinstance(given, type):
        known = ", ".join(COUNTERS)
        raise ExperimentError(f"a token counter must be a function or one of {known}, got {describe(given)}", given)
    if hasattr(given, "__self__"):
        # Methods of two objects share a name, but may count differently.
        raise ExperimentError(f"count_tokens must be a function of a module, got the method {describe(given)}", given)
    name = qualified_name(given, "count_tokens")
    return Counter(name, f"named {name}", given)


def is_instance(given: Any, package: str, *names: str) -> bool:
    """`isinstance` by package and class name, which imports nothing."""
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )


def is_loopback(address: Any) -> bool:
    """Whether an address is one of this machine, without a login."""
    try:
        parts = urlsplit(address)
        _ = parts.port
        known = parts.scheme in ("http", "https") and "@" not in parts.netloc and "\\" not in address
        return known and (parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback)
    except (ValueError, TypeError, AttributeError):
        return False


def client_settings(name: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings for a client: OpenAI's requires a key, but that of the environment is not for this machine."""
    address = settings.get("base_url")
    if address is None or not name.startswith("openai:") or {"api_key", "openai_api_key"} & settings.keys():
        return settings
    return {**settings, "api_key": (not is_loopback(address) and os.environ.get("OPENAI_API_KEY")) or "-"}
