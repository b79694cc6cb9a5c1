"""The specification of an experiment, in Python and in a TOML file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from oprag.compare.data.data_set import DataSet
from oprag.compare.data.read import format_options, read_data
from oprag.compare.metrics.judge import Judge
from oprag.compare.metrics.registry import DEFAULT_METRICS, check_metric_names, metric_name
from oprag.compare.pipelines import Pipeline
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL, counter_of, qualified_name
from oprag.compare.providers.spec import with_name
from oprag.compare.spec.axes import axes
from oprag.compare.spec.data_only import check_data_only
from oprag.compare.spec.grid import Cells, Grid, as_grids, cells_of
from oprag.compare.spec.money import Limits, Price
from oprag.compare.stores import STORE_NAMES
from oprag.compare.validation import (
    BeforeValidator,
    Count,
    Field,
    Integer,
    PlainValidator,
    PydanticCustomError,
    StrictModel,
    String,
    Text,
)
from oprag.errors import ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.files.reading import read_toml
from oprag.masking import describe, listed
from oprag.methods.prompts import OUR_PROMPTS, as_prompts
from oprag.options import check_count, check_names
from oprag.token_counters import HUGGINGFACE, TIKTOKEN
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["Experiment"]

_SECRET = re.compile(
    r"(.*_)?(api_?key|access_key|secret(_key)?|password|passwd|credentials?|(access|api|auth|bearer|hf|session)_token)"
    r"|token|authorization",
    re.IGNORECASE,
)

# Validators only check the form: nothing that a file names may be imported, opened or read before it was checked.


def _data_sets(given: Any) -> Any:
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, DataSet) for one in given.values()):
        raise PydanticCustomError("data", "must map names to data sets, such as from read_data()")
    return given


def _counter(given: Any) -> Any:
    kind, _, which = given.partition(":") if isinstance(given, str) else ("", "", "")
    # Not loaded yet: a tokenizer is a file, or is downloaded.
    if given != LOCAL and not (kind in (HUGGINGFACE, TIKTOKEN) and which.strip()):
        counter_of(given)
    return given


def _named(given: Any) -> Any:
    """Set the name of each model or embedder to its name in the experiment, unless it has one."""
    if not isinstance(given, Mapping):
        return given
    return {name: with_name(one, name) for name, one in given.items()}


def _pipelines(given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise PydanticCustomError("methods", "must map names to pipelines")
    for name, one in given.items():
        if not isinstance(name, str) or not name.strip():
            raise ExperimentError(f"the name of a pipeline must be a string, got {describe(name)}", name)
        if not isinstance(one, Pipeline):
            raise ExperimentError(
                f"{describe(name)} must be a Pipeline, with a version under which its answers are stored, such as "
                f'Pipeline({name}, version="1"), got {describe(one)}',
                one,
            )
    return dict(given)


def _metrics(given: Any) -> Any:
    named = isinstance(given, list | tuple) and all(isinstance(one, str) or callable(one) for one in given)
    if not named or not given:
        raise PydanticCustomError("metrics", "must be a list of names")
    return tuple(dict.fromkeys(given))


def _store(given: Any) -> Any:
    if not callable(given):
        raise ExperimentError(
            "a store of your own must be a function that takes embeddings of LangChain and returns an empty vector "
            f"store; pass it in Python, Experiment(stores=...), got {describe(given)}",
            given,
        )
    return given


class Experiment(StrictModel):
    """An experiment: questions, and all combinations of options to answer them with.

    Attributes:
        name: Name of the experiment; a run with the same name and results file continues it.
        data: Data sets by name.
        grid: Values of each axis, or a list of several grids; see `oprag.compare.spec.axes`. It may only be missing if
            there are own pipelines.
        methods: Own pipelines by name, each a `Pipeline`; they are compared with the cells of the grid, but not crossed
            with its axes.
        models: Models by name: a `ModelSpec`, its `use`, or a mapping of its fields. The first one is the default of
            the axis `model`.
        embedders: Embedders by name: an `EmbedderSpec`, its `use`, or a mapping of its fields.
        stores: Vector stores of your own by name: a function that takes LangChain `Embeddings` and returns an empty
            LangChain vector store, or a context manager of one. Built-in stores do not need to be listed.
        metrics: Names of metrics; a custom metric is a function of a `ScoredAnswer`.
        judges: Metrics that call a model, by name: a `Judge`, or a mapping of its fields. List the names in `metrics`
            as well.
        score_embedder: Embedder of answers and gold answers for `answer_cosine`; the same in all cells, so that scores
            are comparable.
        count_tokens: Token counter of contexts and prompts: approximate, words, characters, local, tiktoken:ENCODING,
            huggingface:PATH, or a function.
        prompts: Prompts by the name of their step.
        prices: Price of a million tokens, by the name of the model or embedder.
        limits: Maximum spending of all runs together.
        max_concurrency: Maximum number of concurrent model calls.
        give_up_after: Number of consecutive failed calls after which a run ends, since the model is not available.

    Raises:
        ExperimentError: Something is unknown or invalid; the message starts with its path.
        PromptError: A prompt is invalid.
    """

    name: Text
    # Any, since pydantic would inspect the dataclass and fail: its public module lacks the names in its annotations.
    data: Annotated[Mapping[str, Any], PlainValidator(_data_sets)]
    grid: Annotated[tuple[Grid, ...], PlainValidator(as_grids)] = ()
    methods: Annotated[Mapping[str, Any], PlainValidator(_pipelines)] = Field(default_factory=dict)
    models: Annotated[dict[str, ModelSpec], BeforeValidator(_named)] = Field(default_factory=dict)
    embedders: Annotated[dict[str, EmbedderSpec], BeforeValidator(_named)] = Field(
        default_factory=lambda: {LOCAL: EmbedderSpec(name=LOCAL)}
    )
    stores: dict[str, Annotated[Any, PlainValidator(_store)]] = Field(default_factory=dict)
    metrics: Annotated[tuple[Any, ...], PlainValidator(_metrics)] = DEFAULT_METRICS
    judges: dict[str, Judge] = Field(default_factory=dict)
    score_embedder: EmbedderSpec = EmbedderSpec()
    count_tokens: Annotated[Any, PlainValidator(_counter)] = "approximate"
    prompts: Annotated[Any, PlainValidator(as_prompts)] = OUR_PROMPTS
    prices: dict[str, Price] = Field(default_factory=dict)
    limits: Limits = Limits()
    max_concurrency: Count = 8
    give_up_after: Count = 25

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, changes: Mapping[str, Any] | None = None) -> Experiment:
        """Read an experiment from a TOML file; `docs/reference/experiment_file.md` lists all keys.

        A file is data: it imports nothing, sends texts only to the providers that it names or to addresses of this
        machine, and reads data only from its folder. Everything else is for an `Experiment` in Python.

        Args:
            path: The path of the file. Data paths in it are relative to its folder.
            changes: Values that override those of the file; tables are merged key by key.

        Raises:
            InputFileError: The file or a data file is missing or cannot be read.
            ExperimentError: The file is not TOML, or something in it is unknown, invalid or not data; the message
                contains the file name and the key.
            DataError: A data file does not match its format.
            PromptError: A prompt is invalid.
            MissingExtraError: A package that is needed to read the data is not installed.
        """
        file = Path(path)
        content = _changed(read_toml(file, "experiment", ExperimentError), changes or {})
        with _at(file.name):
            # First, so that no error message can show a secret.
            _check_settings(content)
            checked = _ExperimentFile(**content)
            check_data_only(content, file.parent)
            data = {name: one.read(name, file.parent) for name, one in checked.data.items()}
            experiment = checked.replace(data=data)
            _ = experiment.token_counter
            with _at("grid"):
                _ = experiment.grid_cells
        return experiment

    def model_post_init(self, context: Any, /) -> None:
        """Reject values that contradict each other."""
        super().model_post_init(context)
        if not self.embedders:
            raise ExperimentError("embedders is empty; define at least one embedder", self.embedders)
        if not self.grid and not self.methods:
            raise ExperimentError("grid is missing; set at least one value of an axis, or methods", self.grid)
        self._check_prices()
        for name in self.stores:
            if name in STORE_NAMES:
                raise ExperimentError(f"{name!r} is the name of a built-in store; use a different name", name)
        _ = self.store_identities
        check_metric_names(self.metrics, self.judges, taken=axes())
        self._check_judges()

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the metrics, the same as in results."""
        return tuple(metric_name(one) for one in self.metrics)

    @property
    def store_identities(self) -> Mapping[str, str]:
        """Module and function of each custom store, by name; the same in every process."""
        return {name: qualified_name(store, f"the store {name!r}") for name, store in self.stores.items()}

    @cached_property
    def token_counter(self) -> TokenCounter:
        """The token counter of contexts and prompts."""
        with _at("count_tokens"):
            counter = counter_of(self.count_tokens)
        # Return this exact function, since a context checks for it to mark its token count as approximate.
        return approximate_tokens if counter.identity == "approximate" else counter

    @cached_property
    def grid_cells(self) -> Cells:
        """The cells of the grid, and the number of other combinations."""
        return cells_of(self)

    def replace(self, **changes: Any) -> Experiment:
        """Make a copy with some attributes replaced; the new values are validated.

        Args:
            **changes: New values by attribute name.
        """
        return Experiment(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def pilot(self, sample: int) -> Experiment:
        """Make a copy with a sample of the questions of each data set.

        Its results show how much scores vary between questions, and hence how many questions are needed. The full
        experiment reuses all of its answers if it is run with the same results file.

        Args:
            sample: Number of questions from each data set.

        Raises:
            OptionError: `sample` is not an integer >= 1.
        """
        # Sample from the data set as given, which may already be a sample.
        check_count("sample", sample, optional=False)
        return self.replace(data={name: data_set.sample(sample) for name, data_set in self.data.items()})

    def _check_judges(self) -> None:
        for name, judge in self.judges.items():
            if judge.model not in self.models:
                raise ExperimentError(
                    f"the judge {name!r} uses the unknown model {describe(judge.model)}; define it in models",
                    judge.model,
                )

    def _check_prices(self) -> None:
        for name in self.prices:
            if name not in {**self.models, **self.embedders}:
                known = ", ".join((*self.models, *self.embedders)) or "none"
                raise ExperimentError(f"prices: unknown name {name!r}; the models and embedders are {known}", name)
        if self.limits.money is not None and self.methods:
            raise ExperimentError(
                f"limits.money cannot limit the pipeline {next(iter(self.methods))!r}, whose cost is unknown; use "
                "limits.calls",
                self.limits.money,
            )
        without = [name for name in self.models if name not in self.prices]
        if self.limits.money is not None and without:
            raise ExperimentError(
                f"limits.money requires a price for every model, but {without[0]!r} has none; set one (0 is valid)",
                without[0],
            )


class _DataTable(StrictModel, extra="allow"):
    """A data set in an experiment file; all other keys are options of its format."""

    path: String
    format: String = "oprag"
    documents: String | None = None
    sample: Count | None = None
    seed: Integer | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Reject options that the format does not support."""
        super().model_post_init(context)
        options = self.model_extra or {}
        check_names(options, (*_DataTable.model_fields, *format_options(self.format)), what="key")
        if self.seed is not None and self.sample is None:
            raise ExperimentError(
                f"seed = {self.seed} requires sample, the number to sample; set sample or remove seed",
                self.seed,
            )

    def read(self, name: str, folder: Path) -> DataSet:
        """Read the data set; only files in the folder are read."""
        documents = None if self.documents is None else folder / self.documents
        with _at(f"data.{listed([name])}"):
            data_set = read_data(
                folder / self.path, self.format, name=name, documents=documents, within=folder, **self.model_extra or {}
            )
            return data_set.sample(self.sample, self.seed or 0)


class _ExperimentFile(Experiment):
    """An experiment whose data has not been read yet."""

    data: dict[str, _DataTable]


def _changed(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(content)
    for name, value in changes.items():
        old = changed.get(name)
        changed[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, Mapping) else value
    return changed


def _check_settings(content: Mapping[str, Any]) -> None:
    """Reject models and embedders without a name, and settings that contain secrets."""
    tables = {"score_embedder": content.get("score_embedder", LOCAL)}
    for part in ("models", "embedders"):
        named = content.get(part)
        tables |= {f"{part}.{listed([name])}": one for name, one in named.items()} if isinstance(named, Mapping) else {}
    for place, table in tables.items():
        use = table.get("use", "") if isinstance(table, Mapping) else table
        if not isinstance(use, str):
            raise ExperimentError(
                f'{place} must contain the key use with a name, such as use = "local", got {describe(use)}', use
            )
        _check_no_secrets(table, place)


def _check_no_secrets(table: Any, place: str) -> None:
    for name, value in table.items() if isinstance(table, Mapping) else ():
        if _SECRET.fullmatch(name.replace("-", "_")):
            raise ExperimentError(
                f"{place}.{listed([name])} would be a secret in a file that others may read; remove it, and set the "
                "environment variable that the provider reads, such as OPENAI_API_KEY",
                name,
            )
        _check_no_secrets(value, f"{place}.{listed([name])}")


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Prefix the messages of errors with their place."""
    try:
        yield
    except MissingExtraError:
        raise
    except OpragError as error:
        kind = ExperimentError if isinstance(error, OptionError) else type(error)
        raise kind(f"{place}: {error}", error.value) from error
