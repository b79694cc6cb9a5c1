"""Work as LangChain runs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature
from typing import Any

__all__ = ["as_run"]

_SIGNATURE = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("given", "config")])


def as_run(work: Callable[..., Any], **values: Any) -> Callable[..., Any]:
    """The work for LangChain's `_call_with_config` and its kind.

    They look up its signature at every call, to see whether it takes a config. Deriving that takes as long as putting
    sixteen chunks in order, so it is stated.

    Args:
        work: Takes what the run is given, and its config.
        **values: What it takes beside that.
    """
    run = partial(work, **values)
    run.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
    return run
