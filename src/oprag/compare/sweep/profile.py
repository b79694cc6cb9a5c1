"""The profile of a setting of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.controls import kind_of
from oprag.errors import OptionError
from oprag.methods.options import MethodOptions
from oprag.options import ContextOptions
from oprag.profile import Profile

__all__ = ["limit_of", "profile_of", "retrieval_of"]

_MARGIN = 0.5
"""Extra candidates as a share of the maximum that a question of the sweep needed, since others may need more."""


def profile_of(setting: SettingSummary, depth: int, about: Mapping[str, Any]) -> Profile:
    """The profile of a setting whose questions needed at most `depth` candidates."""
    k, limit = int(depth * (1 + _MARGIN) + 1), limit_of(setting)
    # At most as many as in the sweep, whose candidates may not have filled the budget.
    values = {**setting.values, "k": k if limit is None else min(k, limit)}
    if values["order"] == "random":
        values["seed"] = setting.matrix.cells[setting.setting.cells[0]].values["seed"]
    context_options = ContextOptions(**_option_values(ContextOptions, values))
    answered = kind_of(values["method"]).writes == "answer"
    options = MethodOptions(**_option_values(MethodOptions, values)) if answered else None
    profile = Profile.of(context_options, options, about)
    counter = setting.matrix.described.get("count_tokens")
    try:
        return replace(profile, context={**profile.context, "count_tokens": counter})
    except OptionError:
        # A custom function: profiles never contain names of code.
        note = f"{counter}, which cannot be stored in a profile; set count_tokens in addition"
        return replace(profile, about={**profile.about, "count_tokens": note})


def retrieval_of(setting: SettingSummary) -> str:
    """The values of the index options, which are not part of a profile, as text."""
    names = ("splitter", "chunk_size", "chunk_overlap", "embedder", "search", "store")
    return ", ".join(f"{name}={setting.values[name]}" for name in names if setting.values.get(name) is not None)


def limit_of(setting: SettingSummary) -> int | None:
    """Maximum number of best-ranked chunks of a setting apart from its token budget; None without a limit."""
    limits = [setting.values[name] for name in ("k", "max_candidates") if setting.values[name] is not None]
    return min(limits, default=None)


def _option_values(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind) if one.name in values}
