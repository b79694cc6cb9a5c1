"""Token counters in profiles: by the names that experiments have for them, and no functions."""

from __future__ import annotations

from typing import Any

from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["counter_name", "counter_named"]

_FUNCTION = "MODULE:FUNCTION"


def counter_name(given: Any) -> str:
    """The name of a token counter.

    A profile may come from somebody else, so that nothing in it may say which code runs here: the function that
    MODULE:FUNCTION names would get every text.

    Args:
        given: A name, or a `Counter` of `oprag.providers.tokenizing`.

    Raises:
        OptionError: It is a function, or names one, or there is no such counter.
    """
    from oprag.providers.tokenizing import COUNTERS, Counter

    if given is approximate_tokens:
        return "approximate"
    name = given.name if isinstance(given, Counter) and not given.identity.startswith("function ") else given
    known = [one for one in COUNTERS if one != _FUNCTION]
    function = callable(name)
    if isinstance(name, str):
        kind, colon, which = name.partition(":")
        like = [one.partition(":")[1] for one in known if one.partition(":")[0] == kind]
        if like == [colon] and bool(which.strip()) is bool(colon):
            return name
        function = bool(colon) and not like
    why = "; a profile holds no functions, so leave it out, and give count_tokens= beside the profile"
    raise OptionError(
        f"count_tokens must be one of {', '.join(known)} in a profile, got {describe(name)}{why if function else ''}",
        given,
    )


def counter_named(name: str) -> TokenCounter:
    """The token counter of a profile, loaded from what is on this machine; code of a model is never run.

    Raises:
        OptionError: It cannot be loaded.
        MissingExtraError: What it needs is not installed.
    """
    if name == "approximate":
        return approximate_tokens
    from oprag.providers.tokenizing import counter_of

    try:
        return counter_of(name, local_files_only=True)
    except ExperimentError as error:
        raise OptionError(f"count_tokens: {error}", name) from error
