"""The profile of a setting, with which retrievers and chains get the same options."""

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

__all__ = ["profile_of", "retrieval_of"]


def profile_of(setting: SettingSummary, about: Mapping[str, Any], **changes: Any) -> Profile:
    """The profile of a setting.

    Args:
        setting: The setting.
        about: What is known of it, for readers of the profile.
        **changes: Values that replace those of the setting.

    Raises:
        OptionError: The setting is an own pipeline or reads no context, so there are no options to store.
    """
    values = {**setting.values, **changes}
    kind = kind_of(str(values["method"]))
    if kind.reads != "context":
        raise OptionError(f"method={values['method']} has no options of a context that a profile could store", values)
    if values["order"] == "random":
        values["seed"] = setting.matrix.cells[setting.setting.cells[0]].values["seed"]
    context_options = ContextOptions(**_option_values(ContextOptions, values))
    options = MethodOptions(**_option_values(MethodOptions, values)) if kind.writes else None
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


def _option_values(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind) if one.name in values}
