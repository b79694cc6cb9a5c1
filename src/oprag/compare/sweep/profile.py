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

_SPREAD = 0.5
"""The share of candidates beyond what any question of the sweep needed, since others may need more."""


def profile_of(setting: SettingSummary, depth: int, about: Mapping[str, Any]) -> Profile:
    """The profile of a setting that needed at most `depth` candidates."""
    wanted, most = int(depth * (1 + _SPREAD) + 1), limit_of(setting)
    # No more than the sweep had, in case the budget did not decide.
    values = {**setting.values, "k": wanted if most is None else min(wanted, most)}
    if values["order"] == "random":
        values["seed"] = setting.matrix.cells[setting.setting.cells[0]].values["seed"]
    context_options = ContextOptions(**_those_of(ContextOptions, values))
    answered = kind_of(values["method"]).writes == "answer"
    options = MethodOptions(**_those_of(MethodOptions, values)) if answered else None
    profile = Profile.of(context_options, options, about)
    counter = setting.matrix.described.get("count_tokens")
    try:
        return replace(profile, context={**profile.context, "count_tokens": counter})
    except OptionError:
        # A function of the user: profiles never name code.
        said = f"{counter}, which no profile can name: give count_tokens beside it"
        return replace(profile, about={**profile.about, "count_tokens": said})


def retrieval_of(setting: SettingSummary) -> str:
    """The values that belong to the index, and so not into a profile."""
    names = ("splitter", "chunk_size", "chunk_overlap", "embedder", "search", "store")
    return ", ".join(f"{name}={setting.values[name]}" for name in names if setting.values.get(name) is not None)


def limit_of(setting: SettingSummary) -> int | None:
    """Maximum number of best-ranked chunks of a setting, whatever its budget; None without a limit."""
    limits = [setting.values[name] for name in ("k", "max_candidates") if setting.values[name] is not None]
    return min(limits, default=None)


def _those_of(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind) if one.name in values}
