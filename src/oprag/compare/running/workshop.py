"""What works on an experiment, put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprag.compare.db.cache import WorkCache
from oprag.compare.metrics.scorer import Scorer
from oprag.compare.running.engine import Engine
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import Allowance, Caller
from oprag.compare.running.recorder import Recorder
from oprag.compare.running.vectors import VectorSource
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.resolved import ResolvedExperiment
from oprag.compare.stores.named import open_store

__all__ = ["longest_replies", "make_engine", "make_library", "make_recorder"]


def make_library(
    opened: ResolvedExperiment,
    cache: WorkCache,
    embedders: Mapping[str, Any] | None = None,
    *,
    kind: type[Library] = Library,
    together: bool = True,
) -> Library:
    """The library of an experiment; with other embedders in place of its own, or of another kind."""
    stores = opened.experiment.stores

    def open_one(name: str, embedder: Any) -> Any:
        return open_store(stores.get(name, name), name, embedder.name)

    return kind(
        opened.experiment.data,
        embedders or opened.embedders,
        opened.cells.cells,
        cache,
        open_one,
        together=together,
        store_identities=opened.experiment.store_identities,
    )


def make_engine(
    opened: ResolvedExperiment,
    library: Library,
    caller: Caller,
    cache: WorkCache,
    meter: Allowance,
    *,
    max_concurrency: int | None = None,
    kind: type[Engine] = Engine,
) -> Engine:
    """The engine of an experiment; with another number of calls at the same time, or of another kind."""
    experiment = opened.experiment
    return kind(
        library,
        caller,
        cache,
        meter,
        model_identity=lambda name: opened.models[name].identity,
        max_concurrency=max_concurrency or experiment.max_concurrency,
        give_up_after=experiment.give_up_after,
    )


def make_recorder(opened: ResolvedExperiment, library: Library, cache: WorkCache) -> Recorder:
    """The recorder of an experiment."""
    experiment = opened.experiment
    embedder = None
    if opened.score_embedder is not None:
        embedder = VectorSource(opened.score_embedder, cache)
    return Recorder(experiment.data, library, Scorer(opened.metrics, embedder))


def longest_replies(experiment: Experiment) -> dict[str, int]:
    """The most tokens of a reply, of the models that were told."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
    longest: dict[str, int] = {}
    for model, spec in experiment.models.items():
        told = [spec.settings[name] for name in names if type(spec.settings.get(name)) is int]
        if told:
            longest[model] = told[0]
    return longest
