"""What an experiment is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from oprag.compare.data.data_set import DataSet
from oprag.compare.db.text import storable
from oprag.compare.metrics.registry import METRICS, check_metrics
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL, counter_of, lasting_name
from oprag.compare.spec.grid import Cells, as_grids, cells_of
from oprag.compare.spec.money import Limits, Price
from oprag.compare.spec.validation import validated
from oprag.compare.stores.named import STORE_NAMES
from oprag.errors import ExperimentError
from oprag.masking import describe
from oprag.methods.prompts import as_prompts
from oprag.options import check_count
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["Experiment"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Questions, and all the ways in which they are to be answered.

    Attributes:
        name: What it is called; runs with the same name in the same results file go on with it.
        data: The data sets by their names.
        grid: The values of each axis, or several such grids; see `oprag.compare.spec.axes`.
        models: The models by their names: `ModelSpec`s, or what they take. The first is the default of the axis.
        embedders: The embedders by their names: `EmbedderSpec`s, or what they take.
        stores: Stores of one's own by their names: MODULE:FUNCTION, or a function of LangChain `Embeddings` that gives
            an empty vector store, or of nothing that gives one of LlamaIndex. The others can be named without.
        metrics: The names of the metrics; all by default.
        score_embedder: Embeds answers and gold answers for `answer_cosine`. It is the same in all cells, so that it
            favours none of them.
        count_tokens: What counts the tokens of contexts, in the reader's unit: approximate, words, characters, local,
            tiktoken:ENCODING, huggingface:PATH, MODULE:FUNCTION, or such a function.
        prompts: Prompts by the name of their step.
        prices: What a million tokens of a model cost, by the name of the model.
        limits: The most that all runs together may spend.
        max_concurrency: How many calls of models are made at the same time.
        give_up_after: How many calls in a row may fail before a run ends, since the model is not there.

    Raises:
        ExperimentError: Something is named that there is not, or cannot be.
        OptionError: An option has a value that it cannot have.
        PromptError: A prompt cannot be used.
    """

    name: str
    data: Mapping[str, DataSet]
    grid: Any
    models: Mapping[str, Any] = field(default_factory=dict)
    embedders: Mapping[str, Any] = field(default_factory=lambda: {LOCAL: LOCAL})
    stores: Mapping[str, str | Callable[[Any], Any]] = field(default_factory=dict)
    metrics: Sequence[str] = tuple(METRICS)
    score_embedder: Any = LOCAL
    count_tokens: Any = "approximate"
    prompts: Any = None
    prices: Mapping[str, Any] = field(default_factory=dict)
    limits: Any = None
    max_concurrency: int = 8
    give_up_after: int = 25

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_data(self.data)
        check_count("max_concurrency", self.max_concurrency, optional=False)
        check_count("give_up_after", self.give_up_after, optional=False)
        counter_of(self.count_tokens)
        if not self.embedders:
            raise ExperimentError("an experiment must have an embedder", self.embedders)
        made: dict[str, Any] = {
            "grid": as_grids(self.grid),
            "models": {name: ModelSpec.of(given, name, place=f"models.{name}") for name, given in self.models.items()},
            "embedders": {
                name: EmbedderSpec.of(given, name, place=f"embedders.{name}") for name, given in self.embedders.items()
            },
            "metrics": check_metrics(self.metrics),
            "score_embedder": EmbedderSpec.of(self.score_embedder, place="score_embedder"),
            "prompts": as_prompts(self.prompts),
            "prices": {name: validated(Price, price, place=f"prices.{name}") for name, price in self.prices.items()},
            "limits": validated(Limits, {} if self.limits is None else self.limits, place="limits"),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        self._check_prices()
        for name in self.stores:
            if name in STORE_NAMES:
                raise ExperimentError(f"there is a store {name!r} already; call yours otherwise", name)
        _ = self.store_identities

    @property
    def store_identities(self) -> Mapping[str, str]:
        """What the stores of one's own are, the same in every process: MODULE:FUNCTION.

        Raises:
            ExperimentError: One is a function without a name.
        """
        return {
            name: store if isinstance(store, str) else lasting_name(store, f"the store {name!r}")
            for name, store in self.stores.items()
        }

    @cached_property
    def token_counter(self) -> TokenCounter:
        """What counts the tokens of contexts."""
        counter = counter_of(self.count_tokens)
        # The function itself, by which a context knows that its tokens are an approximation.
        return approximate_tokens if counter.identity == "approximate" else counter

    @cached_property
    def grid_cells(self) -> Cells:
        """The cells of the grid, and what became of the other combinations.

        Raises:
            ExperimentError: A value cannot be, or no combination can be run.
        """
        return cells_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """What was given: another process makes the cells again sooner than it reads them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _check_prices(self) -> None:
        for name in self.prices:
            if name not in self.models:
                raise ExperimentError(f"there is a price for {name!r}, and no such model", name)
        without = [name for name in self.models if name not in self.prices]
        if self.limits.money is not None and without:
            raise ExperimentError(
                f"there is a limit of money, and no price for the model {without[0]!r}; give it one, which may be 0",
                without[0],
            )


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip() or storable(name) != name:
        raise ExperimentError(f"an experiment must have a name, got {describe(name)}", name)


def _check_data(data: Any) -> None:
    if not isinstance(data, Mapping) or not data or not all(isinstance(one, DataSet) for one in data.values()):
        raise ExperimentError(
            f"data must map names to data sets, as read_data() reads them, got {describe(data)}", data
        )
