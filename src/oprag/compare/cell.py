"""One combination of an experiment's values."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from oprag.compare.axes import METHOD_AXES, axes
from oprag.compare.spec.controls import CONTROLS, kind_of
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split
from oprag.methods.options import MethodOptions
from oprag.methods.registry import OUR_METHODS
from oprag.options import ContextOptions

__all__ = ["Cell"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """How every question of a data set is answered.

    Attributes:
        data: The name of the data set.
        split: How documents are split.
        embedder: The name of the embedder.
        search: How chunks are ranked.
        store: What finds the nearest vectors.
        context_options: How contexts are made.
        options: How answers are made.
        model: The name of the model; None where none is asked.
        repeat: Which of several equal attempts it is, from 1.
    """

    data: str
    split: Split
    embedder: str
    search: SearchKind
    store: str
    context_options: ContextOptions
    options: MethodOptions
    model: str | None
    repeat: int

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.options.method

    def values(self) -> dict[str, Any]:
        """The value on every axis."""
        parts = {
            "data": self.data,
            "splitter": self.split.splitter,
            "chunk_size": self.split.size,
            "chunk_overlap": self.split.overlap,
            "embedder": self.embedder,
            "search": self.search,
            "store": self.store,
            "model": self.model,
            "repeat": self.repeat,
        }
        of = {"context": self.context_options, "method": self.options}
        return {
            name: parts[name] if axis.part == "parts" else getattr(of[axis.part], name) for name, axis in axes().items()
        }

    def normal(self) -> Cell:
        """The same with the default for whatever has no effect here, so that cells that do the same are equal."""
        kind = kind_of(self.method)
        if kind.reads is None:
            return replace(
                self,
                split=Split().complete(),
                embedder="",
                search="dense",
                store="index",
                context_options=ContextOptions(count_tokens=self.context_options.count_tokens),
                options=MethodOptions(method=self.method, prompts=self.options.prompts),
            )
        cell = replace(
            self, context_options=_normal_context_options(self.context_options), options=_normal_options(self.options)
        )
        if kind.writes is None:
            options = MethodOptions(method=self.method, prompts=self.options.prompts)
            return replace(cell, options=options, model=None, repeat=1)
        return cell


def _normal_context_options(context_options: ContextOptions) -> ContextOptions:
    changes: dict[str, Any] = {}
    if context_options.order != "random":
        changes["seed"] = 0
    if context_options.order != "source":
        changes["source_ranking"] = "best_first"
    if not context_options.needs_vectors:
        changes["min_chunks"] = 0
    changes = {name: value for name, value in changes.items() if getattr(context_options, name) != value}
    return replace(context_options, **changes) if changes else context_options


def _normal_options(options: MethodOptions) -> MethodOptions:
    used = {options.method}
    if used & METHOD_AXES["inner_method"]:
        used.add(options.inner_method)
    if not used.issubset((*OUR_METHODS, *CONTROLS)):
        return options  # a method of the user's own may read any of them
    defaults: dict[str, Any] = {field.name: field.default for field in fields(MethodOptions)}
    changes = {
        name: defaults[name]
        for name, methods in METHOD_AXES.items()
        if not used & methods and getattr(options, name) != defaults[name]
    }
    return replace(options, **changes) if changes else options
