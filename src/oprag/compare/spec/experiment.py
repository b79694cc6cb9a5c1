"""The specification of an experiment, in Python and in its TOML file."""

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
from oprag.compare.metrics.custom import check_metric_names, metric_name
from oprag.compare.metrics.judge import Judge
from oprag.compare.metrics.registry import DEFAULT_METRICS
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL, counter_name, counter_of, qualified_name
from oprag.compare.providers.spec import with_name
from oprag.compare.spec.axes import axes
from oprag.compare.spec.grid import Cells, Grid, as_grids, cells_of
from oprag.compare.spec.money import Limits, Price
from oprag.compare.spec.trust import AskTrust, check_trust
from oprag.compare.stores.named import STORE_NAMES
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
from oprag.masking import describe
from oprag.methods.prompts import OUR_PROMPTS, as_prompts
from oprag.options import check_count, check_names
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["Experiment"]

_SECRET = re.compile(
    r"(.*_)?(api_?key|access_key|secret(_key)?|password|passwd|credentials?|(access|api|auth|bearer|hf|session)_token)"
    r"|token|authorization",
    re.IGNORECASE,
)

# Validators check the form alone: nothing that a file names may be imported, opened or read before it is trusted.


def _data_sets(given: Any) -> Any:
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, DataSet) for one in given.values()):
        raise PydanticCustomError("data", "must map names to data sets, as read_data() reads them")
    return given


def _counter(given: Any) -> Any:
    counter_name(given)
    return given


def _named(given: Any) -> Any:
    """Models or embedders, each with its name in the experiment unless it has another one."""
    if not isinstance(given, Mapping):
        return given
    return {name: with_name(one, name) for name, one in given.items()}


def _metrics(given: Any) -> Any:
    named = isinstance(given, list | tuple) and all(isinstance(one, str) or callable(one) for one in given)
    if not named or not given:
        raise PydanticCustomError("metrics", "must be a list of names")
    return tuple(dict.fromkeys(given))


def _store(given: Any) -> Any:
    if isinstance(given, Mapping):
        # In a table with `use`, as models are.
        check_names(given, ("use",), what="key")
        given = given.get("use", "")
    if isinstance(given, str) and ":" not in given:
        raise ExperimentError(f'a store must be use = "MODULE:FUNCTION", got {describe(given)}', given)
    return given


class Experiment(StrictModel):
    """Questions, and all the ways in which they are answered.

    Attributes:
        name: Name of the experiment; a run with the same name and results file continues it.
        data: Data sets by name.
        grid: Values of each axis, or several such grids; see `oprag.compare.spec.axes`.
        models: Models by name: `ModelSpec`s, or what they take. The first one is the default of the axis.
        embedders: Embedders by name: `EmbedderSpec`s, or what they take.
        stores: Your own stores by name: MODULE:FUNCTION or a function, which takes LangChain `Embeddings` and returns
            an empty vector store, or takes nothing and returns one of LlamaIndex. Others need not be listed.
        metrics: Names of metrics; your own are MODULE:FUNCTION, or a function, of a `ScoredAnswer`.
        judges: Metrics that ask a model, by name: `Judge`s, or what they take; each is named in `metrics` too.
        score_embedder: Embeds answers and gold answers for `answer_cosine`; the same in all cells, so that it favours
            none of them.
        count_tokens: Counts the tokens of contexts, in the reader's unit: approximate, words, characters, local,
            tiktoken:ENCODING, huggingface:PATH, MODULE:FUNCTION, or such a function.
        prompts: Prompts by the name of their step.
        prices: Price of a million tokens of a model, by the name of the model.
        limits: Maximum that all runs together may spend.
        max_concurrency: Maximum number of concurrent calls of models.
        give_up_after: Number of consecutive failed calls that end a run, since the model is not available.

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
    def from_file(
        cls, path: str | os.PathLike[str], *, trust: bool | AskTrust = False, changes: Mapping[str, Any] | None = None
    ) -> Experiment:
        """Read an experiment from a TOML file; `docs/experiment_file.md` has all keys.

        A file can name functions to call, addresses to send data to, and files to read. Without trust such a file is
        refused before any of that happens, and only files in its folder are read. An `Experiment` made in Python is
        trusted: it is the caller's own code.

        Args:
            path: The file. Paths of data in it are relative to its folder.
            trust: Whether the file may run code and reach other hosts and folders; or a function that says so, which is
                called with the parts that need trust, as in `UntrustedExperimentError.needs`.
            changes: Replaces values of the file; tables are changed key by key.

        Raises:
            UntrustedExperimentError: Parts of the file need trust and are not trusted; `needs` has them.
            InputFileError: The file, or one of the files of data, is missing or cannot be read.
            ExperimentError: The file is not TOML, or something in it is unknown or invalid; the message names the
                file and the key.
            DataError: The data are not in their format.
            PromptError: A prompt cannot be used.
            MissingExtraError: A package that reads the data is not installed.
            OptionError: `trust` is neither a truth value nor a function.
        """
        if not isinstance(trust, bool) and not callable(trust):
            raise OptionError(f"trust must be True, False or a function, got {describe(trust)}", trust)
        file = Path(path)
        said = _changed(read_toml(file, "experiment", ExperimentError), changes or {})
        with _at(file.name):
            # Before any value can be shown.
            _check_settings(said)
            checked = _ExperimentFile(**said)
            trusted = check_trust(said, file.parent, trust=trust)
            data = {name: one.read(name, file.parent, trusted=trusted) for name, one in checked.data.items()}
            experiment = checked.replace(data=data)
            _ = experiment.token_counter
            with _at("grid"):
                _ = experiment.grid_cells
        return experiment

    def model_post_init(self, context: Any, /) -> None:
        """Refuse values that do not go together."""
        super().model_post_init(context)
        if not self.embedders:
            raise ExperimentError("an experiment must have an embedder", self.embedders)
        self._check_prices()
        for name in self.stores:
            if name in STORE_NAMES:
                raise ExperimentError(f"there is a store {name!r} already; call yours otherwise", name)
        _ = self.store_identities
        check_metric_names(self.metrics, self.judges, taken=axes())
        self._check_judges()

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the metrics, as results have them."""
        return tuple(metric_name(one) for one in self.metrics)

    @property
    def store_identities(self) -> Mapping[str, str]:
        """MODULE:FUNCTION of each of the user's own stores, the same in every process."""
        return {
            name: store if isinstance(store, str) else qualified_name(store, f"the store {name!r}")
            for name, store in self.stores.items()
        }

    @cached_property
    def token_counter(self) -> TokenCounter:
        """Counts the tokens of contexts."""
        with _at("count_tokens"):
            counter = counter_of(self.count_tokens)
        # The function itself, by which a context knows that its tokens are an approximation.
        return approximate_tokens if counter.identity == "approximate" else counter

    @cached_property
    def grid_cells(self) -> Cells:
        """The cells of the grid, and counts of the other combinations."""
        return cells_of(self)

    def replace(self, **changes: Any) -> Experiment:
        """The same experiment with other values, which are checked.

        Args:
            **changes: The values, by the names of the attributes.
        """
        return Experiment(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def pilot(self, questions: int) -> Experiment:
        """The same experiment with a few questions of each data set.

        Its results show how much scores differ between questions, and so how many questions are needed. The experiment
        itself uses all of its answers again, in the same results file.

        Args:
            questions: Number of questions of each data set.

        Raises:
            OptionError: The number is not a whole number from 1.
        """
        # Of the sample: a sample of ten is not a part of one of thirty.
        check_count("questions", questions, optional=False)
        return self.replace(data={name: data_set.sample(questions) for name, data_set in self.data.items()})

    def _check_judges(self) -> None:
        for name, judge in self.judges.items():
            if judge.model not in self.models:
                raise ExperimentError(
                    f"the judge {name!r} has the model {describe(judge.model)}, and there is no such model", judge.model
                )
            if self.models[judge.model].gives_likelihoods:
                raise ExperimentError(
                    f"the judge {name!r} has the model {judge.model!r}, which gives likelihoods and writes nothing",
                    judge.model,
                )

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


class _DataTable(StrictModel, extra="allow"):
    """A data set in an experiment file; other keys are options of its format."""

    path: String
    format: String = "oprag"
    documents: String | None = None
    questions: Count | None = None
    seed: Integer | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Refuse options that the format does not have."""
        super().model_post_init(context)
        options = self.model_extra or {}
        check_names(options, (*_DataTable.model_fields, *format_options(self.format)), what="key")
        if self.seed is not None and self.questions is None:
            raise ExperimentError("seed goes with questions, which says how many are drawn", self.seed)

    def read(self, name: str, folder: Path, *, trusted: bool) -> DataSet:
        """The data set; of a file that is not trusted only what lies in its folder."""
        documents = None if self.documents is None else folder / self.documents
        within = None if trusted else folder
        with _at(f"data.{name}"):
            data_set = read_data(
                folder / self.path, self.format, name=name, documents=documents, within=within, **self.model_extra or {}
            )
            return data_set.sample(self.questions, self.seed or 0)


class _ExperimentFile(Experiment):
    """An experiment whose data are not read."""

    data: dict[str, _DataTable]


def _changed(said: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(said)
    for name, value in changes.items():
        old = changed.get(name)
        changed[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, Mapping) else value
    return changed


def _check_settings(said: Mapping[str, Any]) -> None:
    """Refuse models and embedders that are not named, and settings of them that would be secrets."""
    tables = {"score_embedder": said.get("score_embedder", LOCAL)}
    for part in ("models", "embedders"):
        named = said.get(part)
        tables |= {f"{part}.{name}": one for name, one in named.items()} if isinstance(named, Mapping) else {}
    for place, table in tables.items():
        use = table.get("use", "") if isinstance(table, Mapping) else table
        if not isinstance(use, str):
            raise ExperimentError(f'{place} must say what to use, such as use = "local", got {describe(use)}', use)
        _check_no_secrets(table, place)


def _check_no_secrets(table: Any, place: str) -> None:
    for name, value in table.items() if isinstance(table, Mapping) else ():
        if _SECRET.fullmatch(name.replace("-", "_")):
            raise ExperimentError(
                f"{place}.{name} would be a secret in a file that is passed on; leave it out, and set the environment "
                "variable that the provider reads, such as OPENAI_API_KEY, or name another one in api_key_env",
                name,
            )
        _check_no_secrets(value, f"{place}.{name}")


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put the place before the message of an error."""
    try:
        yield
    except MissingExtraError:
        raise
    except OpragError as error:
        kind = ExperimentError if isinstance(error, OptionError) else type(error)
        raise kind(f"{place}: {error}", error.value) from error
