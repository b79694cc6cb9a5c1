"""What an experiment is made of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

from oprag.compare.data.data_set import DataSet
from oprag.compare.metrics.registry import METRICS, check_metrics
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL, counter_of, lasting_name
from oprag.compare.providers.spec import with_name
from oprag.compare.spec.grid import Cells, Grid, as_grids, cells_of
from oprag.compare.spec.money import Limits, Price
from oprag.compare.spec.validation import (
    BeforeValidator,
    Count,
    Field,
    PlainValidator,
    PydanticCustomError,
    StrictModel,
    Text,
)
from oprag.compare.stores.named import STORE_NAMES
from oprag.errors import ExperimentError
from oprag.methods.prompts import OUR_PROMPTS, as_prompts
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["Experiment"]


def _data_sets(given: Any) -> Any:
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, DataSet) for one in given.values()):
        raise PydanticCustomError("data", "must map names to data sets, as read_data() reads them")
    return given


def _counter(given: Any) -> Any:
    counter_of(given)
    return given


def _named(given: Any) -> Any:
    """Tables of models or embedders, with the names that they have in the experiment where they have no others."""
    if not isinstance(given, Mapping):
        return given
    return {name: with_name(one, name) for name, one in given.items()}


class Experiment(StrictModel):
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
        ExperimentError: Something is unknown or invalid; the message begins with its place.
        PromptError: A prompt cannot be used.
    """

    name: Text
    # Any, since pydantic would look into dataclasses, whose public module has not the names of their annotations.
    data: Annotated[Mapping[str, Any], PlainValidator(_data_sets)]
    grid: Annotated[tuple[Grid, ...], PlainValidator(as_grids)]
    models: Annotated[dict[str, ModelSpec], BeforeValidator(_named)] = Field(default_factory=dict)
    embedders: Annotated[dict[str, EmbedderSpec], BeforeValidator(_named)] = Field(
        default_factory=lambda: {LOCAL: EmbedderSpec(name=LOCAL)}
    )
    stores: dict[str, Any] = Field(default_factory=dict)
    metrics: Annotated[tuple[str, ...], PlainValidator(check_metrics)] = tuple(METRICS)
    score_embedder: EmbedderSpec = EmbedderSpec()
    count_tokens: Annotated[Any, PlainValidator(_counter)] = "approximate"
    prompts: Annotated[Any, PlainValidator(as_prompts)] = OUR_PROMPTS
    prices: dict[str, Price] = Field(default_factory=dict)
    limits: Annotated[Limits, BeforeValidator(lambda given: {} if given is None else given)] = Limits()
    max_concurrency: Count = 8
    give_up_after: Count = 25

    def model_post_init(self, context: Any, /) -> None:
        """Refuse what does not go together."""
        super().model_post_init(context)
        if not self.embedders:
            raise ExperimentError("an experiment must have an embedder", self.embedders)
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

    def __getstate__(self) -> dict[Any, Any]:
        """What was given: another process makes the cells again sooner than it reads them."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return super().__getstate__() | {"__dict__": given}

    def changed(self, **changes: Any) -> Experiment:
        """The same experiment with other values, which are checked.

        Args:
            **changes: The values, by the names of the attributes.
        """
        return Experiment(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

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
