"""The specification of an experiment, in Python and in a TOML file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from oprag._internal.files.reading import read_toml
from oprag._internal.masking import describe, listed, without_keys
from oprag._internal.tokens import TokenCounter, approximate_tokens
from oprag.compare.data.data_set import DataSet
from oprag.compare.data.read import format_options, read_data
from oprag.compare.experiment_methods import Pipeline
from oprag.compare.grid import Cells, Grid, as_grids, axes, cells_of
from oprag.compare.metrics.judge import Judge
from oprag.compare.metrics.registry import DEFAULT_METRICS, check_metric_names, metric_name
from oprag.compare.providers.identity import LOCAL, counter_of, is_loopback, qualified_name
from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.compare.stores import STORE_NAMES
from oprag.compare.validation import Amount, Count, Natural, StrictModel, Text, pydantic
from oprag.errors import ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.index.tokenizers import BUILT_IN, TIKTOKEN, NamedTokenizer
from oprag.methods.answer import Usage
from oprag.methods.prompts import OUR_PROMPTS, as_prompts
from oprag.options import check_names, check_text

__all__ = ["Experiment", "Limits", "Price"]


class Price(StrictModel):
    """Prices of a model per million tokens, in any currency; use the same one for all models.

    Attributes:
        input: Price of input tokens.
        output: Price of output tokens.
        cached: Price of cached input tokens; by default that of `input`.

    Raises:
        ExperimentError: A price is negative or not a number.
    """

    input: Amount
    output: Amount
    cached: Amount | None = None

    def of(self, usage: Usage) -> float:
        """The price of some tokens.

        Args:
            usage: The tokens of one or more calls.
        """
        # At least 0, since some providers do not include cached tokens in the input tokens.
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        cached = self.input if self.cached is None else self.cached
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1_000_000


class Limits(StrictModel):
    """Spending limits of an experiment on models, over all its runs; None for no limit.

    Attributes:
        calls: Maximum number of model calls, including failed ones.
        tokens: Maximum number of input and output tokens.
        money: Maximum price of the tokens, in the currency of the prices.

    Raises:
        ExperimentError: A limit is negative or not a number.
    """

    calls: Natural | None = None
    tokens: Natural | None = None
    money: Amount | None = None


class Experiment(StrictModel):
    """An experiment: questions, and all combinations of options to answer them with.

    Attributes:
        name: Name of the experiment; a run with the same name and results file continues it.
        data: Data sets by name.
        grid: Values of each axis, or a list of several grids; see `oprag.compare.grid`. It may only be missing if
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
    data: Annotated[dict[Text, pydantic.InstanceOf[DataSet]], pydantic.Field(min_length=1)]
    grid: Annotated[tuple[Grid, ...], pydantic.PlainValidator(as_grids)] = ()
    methods: dict[Text, pydantic.InstanceOf[Pipeline]] = pydantic.Field({})
    models: dict[str, ModelSpec] = pydantic.Field({})
    embedders: Annotated[dict[str, EmbedderSpec], pydantic.Field(min_length=1)] = pydantic.Field(
        {LOCAL: EmbedderSpec()}
    )
    stores: dict[str, Callable[..., Any]] = pydantic.Field({})
    metrics: Annotated[tuple[Any, ...], pydantic.Field(min_length=1)] = DEFAULT_METRICS
    judges: dict[str, Judge] = pydantic.Field({})
    score_embedder: EmbedderSpec = EmbedderSpec()
    count_tokens: Any = "approximate"
    prompts: Annotated[Any, pydantic.PlainValidator(as_prompts)] = OUR_PROMPTS
    prices: dict[str, Price] = pydantic.Field({})
    limits: Limits = Limits()
    max_concurrency: Count = 8
    give_up_after: Count = 25

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Experiment:
        """Read an experiment from a TOML file; `docs/reference/experiment_file.md` lists all keys.

        A file is data: it imports nothing, sends texts only to the providers that it names or to addresses of this
        machine, and reads data only from its folder. Everything else is for an `Experiment` in Python.

        Args:
            path: The path of the file. Data paths in it are relative to its folder.

        Raises:
            InputFileError: The file or a data file is missing or cannot be read.
            ExperimentError: The file is not TOML, or something in it is unknown, invalid or not data; the message
                contains the file name and the key.
            DataError: A data file does not match its format.
            PromptError: A prompt is invalid.
            MissingExtraError: A package that is needed to read the data is not installed.
        """
        file = Path(path)
        content = read_toml(file, "experiment", ExperimentError)
        with _at(file.name):
            _check_data_only(content)
            if isinstance(data := content.get("data"), Mapping):
                content["data"] = {name: _read(name, table, file.parent) for name, table in data.items()}
            experiment = cls(**content)
            _ = experiment.token_counter
            with _at("grid"):
                _ = experiment.grid_cells
        return experiment

    def model_post_init(self, context: Any, /) -> None:
        """Reject values that contradict each other."""
        super().model_post_init(context)
        if not self.grid and not self.methods:
            raise ExperimentError("grid is missing; set at least one value of an axis, or methods", self.grid)
        for name, store in self.stores.items():
            if name in STORE_NAMES:
                raise ExperimentError(f"{name!r} is the name of a built-in store; use a different name", name)
            qualified_name(store, f"the store {name!r}")
        check_metric_names(self.metrics, self.judges, taken=axes())
        for name, judge in self.judges.items():
            if judge.model not in self.models:
                known = f"the judge {name!r} uses the unknown model {describe(judge.model)}; define it in models"
                raise ExperimentError(known, judge.model)
        check_names(self.prices, {**self.models, **self.embedders}, what="model or embedder in prices")
        unknown = next((name for name in (*self.methods, *self.models) if name not in self.prices), None)
        if self.limits.money is not None and unknown is not None:
            advice = "set one for a model (0 is valid), or use limits.calls"
            problem = f"limits.money requires known costs, but {unknown!r} has no price; {advice}"
            raise ExperimentError(problem, unknown)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the metrics, the same as in results."""
        return tuple(metric_name(one) for one in self.metrics)

    @cached_property
    def counter(self) -> NamedTokenizer:
        """The token counter with its identity; raises an ExperimentError if `count_tokens` is invalid."""
        with _at("count_tokens"):
            return counter_of(self.count_tokens)

    @cached_property
    def token_counter(self) -> TokenCounter:
        """The token counter of contexts and prompts; raises an ExperimentError if `count_tokens` is invalid."""
        if any(data_set.missing for data_set in self.data.values()):
            return approximate_tokens  # nothing is counted, so no tokenizer needs to be there
        # Return this exact function, since a context checks for it to mark its token count as approximate.
        return approximate_tokens if self.counter.identity == "approximate" else self.counter

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


def _read(name: str, given: Any, folder: Path) -> DataSet:
    """Read a data set of an experiment file; only files in its folder are read."""
    with _at(f"data.{listed([name])}"):
        if not isinstance(given, Mapping) or "path" not in given:
            raise ExperimentError(f"it must be a table with the key path, got {describe(given)}", given)
        options = {"format": "oprag", "sample": None, "seed": 0, **given}
        names = format_options(options["format"])
        check_names(options, ("path", "format", "documents", "sample", "seed", "size", "source", *names), what="key")
        count, seed = options.pop("sample"), options.pop("seed")
        for option in {"path", "documents"} & options.keys():
            check_text(option, options[option])
            options[option] = folder / options[option]
        return read_data(**options, name=name, within=folder).sample(count, seed)


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


# What a file may contain

# LangChain's providers without LiteLLM, whose names can be addresses, and Hugging Face, whose models are downloaded.
_PROVIDERS = {
    *("anthropic", "anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock", "bedrock_converse"),
    *("bedrock_mantle_anthropic", "bedrock_mantle_openai", "cohere", "deepseek", "fireworks", "google_genai"),
    *("google_anthropic_vertex", "google_vertexai", "groq", "ibm", "langsmith", "meta", "mistralai", "nvidia"),
    *("ollama", "openai", "openrouter", "perplexity", "together", "upstage", "xai"),
}
# Clients whose `base_url` is where texts are sent, and nothing else, with the variable for other addresses.
_ADDRESSES = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_HOST"}
_SETTINGS = {
    *("use", "name", "temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty", "presence_penalty"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "num_ctx", "stream_usage"),
    *("reasoning", "reasoning_effort", "thinking", "thinking_budget", "thinking_level", "verbosity"),
    *("timeout", "max_retries", "question_prefix", "document_prefix", "dimensions", "chunk_size"),
}
_IN_PYTHON = "an experiment file is data; use an Experiment in Python for it"


def _check_data_only(content: Mapping[str, Any]) -> None:
    """Refuse what could run code, send texts elsewhere, or be a secret, and what is not known to be harmless.

    Only names are checked, before anything is validated, imported, opened or called, so that no message can show a
    secret.
    """
    _check_use("score_embedder", content.get("score_embedder", LOCAL))
    for part in ("models", "embedders"):
        named = content.get(part)
        for name, one in named.items() if isinstance(named, Mapping) else ():
            _check_use(f"{part}.{listed([name])}", one)
    _check_counter("count_tokens", content.get("count_tokens", LOCAL))


def _check_use(place: str, given: Any) -> None:
    """Check a model or embedder, given as a name or as a table with `use` and settings."""
    table = given if isinstance(given, Mapping) else {"use": given}
    use, embeds = table.get("use"), not place.startswith("models.")
    if not isinstance(use, str):
        problem = f'{place} must contain the key use with a name, such as use = "local", got {describe(use)}'
        raise ExperimentError(problem, use)
    provider, _, model = use.partition(":")
    if use != LOCAL and not (provider in _PROVIDERS and model.strip() and "://" not in use):
        raise ExperimentError(f"{place} must be {LOCAL} or PROVIDER:MODEL, got {describe(use)}; {_IN_PYTHON}", use)
    for name, value in table.items():
        if embeds and name == "tokenizer":
            _check_counter(f"{place}.{name}", value)
        elif name == "base_url":
            # The address is not shown: it may contain a login.
            if provider not in _ADDRESSES or not is_loopback(value):
                other = f"set the environment variable {_ADDRESSES[provider]}" if provider in _ADDRESSES else _IN_PYTHON
                problem = "is only valid with openai or ollama, and for an address of this machine"
                raise ExperimentError(f"{place}.{name} {problem}; {other}", provider)
        # With paid = false, a plan would call the embedder.
        elif (embeds, name, value) != (True, "paid", True) and not (name in _SETTINGS and _is_plain(value)):
            problem = f"{place}.{listed([name])} is not one of the settings that are known to be harmless; {_IN_PYTHON}"
            raise ExperimentError(f"{problem}, and an environment variable such as OPENAI_API_KEY for a key", name)


def _check_counter(place: str, given: Any) -> None:
    if not isinstance(given, str) or not (given in (*BUILT_IN, LOCAL) or given.startswith(f"{TIKTOKEN}:")):
        known = f"one of {', '.join(BUILT_IN)}, {LOCAL}, {TIKTOKEN}:ENCODING"
        raise ExperimentError(f"{place} must be {known}, got {describe(given)}; {_IN_PYTHON}", given)


def _is_plain(value: Any) -> bool:
    """Whether a setting is a string, a number, or a flat list or table of them without a secret."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    if not all(isinstance(one, str | int | float) for one in inner):
        return False
    text = json.dumps(value, ensure_ascii=False)
    return isinstance(value, str) or without_keys(text) == text
