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
from oprag.compare.spending import Limits, Price
from oprag.compare.stores import STORE_NAMES
from oprag.compare.validation import Count, StrictModel, Text, pydantic
from oprag.errors import ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.index.tokenizers import BUILT_IN, TIKTOKEN, counter_named
from oprag.methods.prompts import OUR_PROMPTS, as_prompts
from oprag.options import check_count, check_names, check_text

__all__ = ["Experiment"]


class Experiment(StrictModel):
    """An experiment: questions, and all combinations of options to answer them with.

    Attributes:
        name: Name of the experiment; a run with the same name and results file continues it.
        data: Data sets by name.
        grid: Values of each axis, or a list of several grids. It may only be missing if there are own pipelines.
        methods: Own pipelines by name, each a `Pipeline`; they are not crossed with the axes of the grid.
        models: Models by name: a `ModelSpec`, its `use`, or a mapping of its fields. The first one is the default of
            the axis `model`.
        embedders: Embedders by name: an `EmbedderSpec`, its `use`, or a mapping of its fields.
        stores: Vector stores of your own by name: a function that takes LangChain `Embeddings` and returns an empty
            LangChain vector store, or a context manager of one. Built-in stores do not need to be listed.
        metrics: Names of metrics; a custom metric is a function of a `ScoredAnswer`.
        judges: Metrics that call a model, by name: a `Judge`, or a mapping of its fields; also listed in `metrics`.
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
    data: dict[Text, pydantic.InstanceOf[DataSet]] = pydantic.Field(min_length=1)
    grid: Annotated[tuple[Grid, ...], pydantic.PlainValidator(as_grids)] = ()
    methods: dict[Text, pydantic.InstanceOf[Pipeline]] = pydantic.Field({})
    models: dict[str, ModelSpec] = pydantic.Field({})
    embedders: dict[str, EmbedderSpec] = pydantic.Field({LOCAL: EmbedderSpec()}, min_length=1)
    stores: dict[str, Callable[..., Any]] = pydantic.Field({})
    metrics: tuple[Any, ...] = pydantic.Field(DEFAULT_METRICS, min_length=1)
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
            with _at("grid"):
                _ = experiment.grid_cells
        return experiment

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002
        """Reject values that contradict each other."""
        if not (self.grid or self.methods):
            raise ExperimentError("grid is missing; set at least one value of an axis, or methods", self.grid)
        for name, store in self.stores.items():
            if name in STORE_NAMES:
                raise ExperimentError(f"{name!r} is the name of a built-in store; use a different name", name)
            qualified_name(store, f"the store {name!r}")
        check_metric_names(self.metrics, self.judges, taken=axes())
        for name, judge in self.judges.items():
            check_names([judge.model], self.models, what=f"model of the judge {name!r}")
        check_names(self.prices, {**self.models, **self.embedders}, what="model or embedder in prices")
        unknown = next((name for name in (*self.methods, *self.models) if name not in self.prices), None)
        if self.limits.money is not None and unknown is not None:
            advice = "set one for a model (0 is valid), or use limits.calls"
            raise ExperimentError(f"limits.money requires known costs, but {unknown!r} has no price; {advice}", unknown)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of the metrics, the same as in results."""
        return tuple(metric_name(one) for one in self.metrics)

    @cached_property
    def token_counter(self) -> TokenCounter:
        """The token counter of contexts and prompts; raises an ExperimentError if `count_tokens` is invalid."""
        given = self.count_tokens
        # A context whose counter is this very function is marked as approximate. Without data, nothing is counted.
        if given in ("approximate", approximate_tokens) or any(data_set.missing for data_set in self.data.values()):
            return approximate_tokens
        with _at("count_tokens"):
            return counter_named(given) if isinstance(given, str) else counter_of(given)

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
        check_count("sample", count := options.pop("sample"))
        seed = options.pop("seed")
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
_SETTINGS = {
    *("use", "name", "temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty", "presence_penalty"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "num_ctx", "stream_usage"),
    *("reasoning", "reasoning_effort", "thinking", "thinking_budget", "thinking_level", "verbosity"),
    *("timeout", "max_retries", "question_prefix", "document_prefix", "dimensions", "chunk_size"),
}
_IN_PYTHON = "an experiment file is data; use an Experiment in Python for it"


def _check_data_only(content: Mapping[str, Any]) -> None:
    """Refuse what could run code, send texts elsewhere, or be a secret, and what is not known to be harmless.

    Done before anything is validated, imported, opened or called, so that no message can show a secret.
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
            # Of these clients, it is where texts are sent, and nothing else. It is not shown: it may contain a login.
            if provider not in ("openai", "ollama") or not is_loopback(value):
                problem = "is only valid with openai or ollama, and for an address of this machine"
                advice = "for others, set the environment variable OPENAI_BASE_URL or OLLAMA_HOST"
                raise ExperimentError(f"{place}.{name} {problem}; {advice}", provider)
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
