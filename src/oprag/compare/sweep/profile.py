"""The profile of a setting of a sweep."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.reader import ResultsReader
from oprag.compare.spec.controls import kind_of
from oprag.compare.sweep.points import limit_of
from oprag.errors import OptionError
from oprag.methods.options import MethodOptions
from oprag.options import ContextOptions
from oprag.profile import Profile

__all__ = ["profile_of", "retrieval_of"]

_SPREAD = 0.5
"""More candidates than any question of the sweep needed, since others may need more."""


def profile_of(setting: SettingSummary, path: str | os.PathLike[str], about: Mapping[str, Any]) -> Profile:
    """What a retriever, a chain or an engine needs to do as a setting of a sweep does.

    Args:
        setting: The setting.
        path: The results file.
        about: Where the profile came from.
    """
    values = {**setting.values, "k": _candidates(setting, path)}
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
        # A function of the user's own: no profile names code to be run.
        said = f"{counter}, which no profile can name: give count_tokens beside it"
        return replace(profile, about={**profile.about, "count_tokens": said})


def retrieval_of(setting: SettingSummary) -> str:
    """What a profile cannot hold, since it belongs to the index."""
    names = ("splitter", "chunk_size", "chunk_overlap", "embedder", "search", "store")
    return ", ".join(f"{name}={setting.values[name]}" for name in names if setting.values.get(name) is not None)


def _those_of(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind) if one.name in values}


def _candidates(setting: SettingSummary, path: str | os.PathLike[str]) -> int:
    """How many of the best-ranked chunks a retriever has to give, so that the budget decides as it did here.

    Not more than there were here, where the budget did not decide.
    """
    ours = {setting.matrix.cells[cell].key for cell in setting.setting.cells}
    with ResultsReader(path, setting.matrix.experiment) as reader:
        contexts = reader.contexts([place for place, cell in enumerate(reader.cells) if cell.key in ours])
        needed = max((rank + 1 for stored in contexts for _, rank, _ in stored.context.kept), default=1)
    wanted, most = int(needed * (1 + _SPREAD) + 1), limit_of(setting)
    return wanted if most is None else min(wanted, most)
