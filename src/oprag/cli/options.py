"""Options shared by several commands, and options generated from dataclass fields."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from oprag.compare.providers.names import LOCAL, counter_of
from oprag.errors import ExperimentError, MissingExtraError, OptionError
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split, Splitter
from oprag.methods.registry import method_names
from oprag.options import ContextOptions, option
from oprag.profile import Profile, read_profile
from oprag.tokens import approximate_tokens

__all__ = [
    "LIMITS",
    "METHOD",
    "MODEL",
    "OUTPUT",
    "AsJson",
    "Everything",
    "Explain",
    "Files",
    "Indexing",
    "LimitCalls",
    "LimitTokens",
    "MainMetric",
    "MaxConcurrency",
    "ProfilePath",
    "Question",
    "RetryFailed",
    "TypedOptions",
    "Yes",
    "context_options_of",
    "metric_names",
    "profile_for_answers",
    "typed_options",
]

# Panels of the help. Panels with --x/--no-x options need short titles, or names are cut off at 80 columns.
MODEL, METHOD, OUTPUT, LIMITS = "Model", "Method", "Output", "Limits"
_PANELS = {
    **dict.fromkeys(
        ("k", "max_candidates", "continuity", "token_budget", "count_tokens", "neighbors", "whole_source_tokens"),
        "Selection",
    ),
    **dict.fromkeys(("similarity_threshold", "redundancy_threshold", "min_chunks"), "Thresholds"),
    **dict.fromkeys(
        ("order", "seed", "source_ranking", "on_missing_position", "on_uncertain", "source_key", "position_key"),
        "Order",
    ),
    **dict.fromkeys(("stitch", "separator", "gap", "header"), "Rendering"),
    **dict.fromkeys(("splitter", "chunk_size", "chunk_overlap", "search", "embeddings"), "Index"),
    **dict.fromkeys(("index_cache", "clear_index_cache"), "Cache"),
    "cite": OUTPUT,
}


def metric_names() -> list[str]:
    """Names of the metrics, for shell completion."""
    from oprag.compare.metrics.registry import METRICS

    return list(METRICS)


Files = Annotated[list[str], typer.Argument(help="Text, Markdown (both UTF-8) or PDF files; - reads standard input.")]
Question = Annotated[str, typer.Argument(help="The question.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the complete result as JSON.", rich_help_panel=OUTPUT)]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Also explain the context: which chunks were kept, which were dropped and why.",
        rich_help_panel=OUTPUT,
    ),
]
ProfilePath = Annotated[
    str | None,
    typer.Option("--profile", help="A profile, such as oprag.toml; command-line options take precedence over it."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the cost confirmation.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Retry questions that failed in an earlier run.")]
Everything = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Also print the report's tables: all metrics, all differences and all measurements.",
        rich_help_panel=OUTPUT,
    ),
]
MainMetric = Annotated[
    str | None,
    typer.Option(
        help="The main metric. Default: the first metric that has scores and for which higher is better.",
        autocompletion=metric_names,
        rich_help_panel=OUTPUT,
    ),
]
MaxConcurrency = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of concurrent model calls.", rich_help_panel=LIMITS)
]
LimitCalls = Annotated[
    int | None, typer.Option(min=0, help="Maximum number of model calls over all runs.", rich_help_panel=LIMITS)
]
LimitTokens = Annotated[
    int | None,
    typer.Option(
        min=0, help="Maximum number of model tokens, input plus output, over all runs.", rich_help_panel=LIMITS
    ),
]

_KEYS = ("source_key", "position_key")
_TEXTS = ("separator", "gap", "header")
_METHODS = ("method", "inner_method")
_FLAGS = {"clear_index_cache": "--clear-index-cache"}
"""Options without --no-x: no profile sets them, so there is nothing to switch off."""
_APPROXIMATE = "approximate"
_MAX_CHOICES_WIDTH = 36  # characters of an option name plus its choices; longer ones leave too little room for the help
# Typer's context, which tells typed options from defaults; Typer passes it to one parameter of a command.
_CONTEXT = inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


@dataclass(frozen=True)
class TypedOptions:
    """Values of the command-line options for the fields of a dataclass."""

    kind: type
    typed: Mapping[str, Any]
    """Values by option name; None if an option was not given and has no default."""
    given: frozenset[str] = frozenset()
    """Names of the options that the user typed; the others have the command's defaults."""

    def keywords(self, profile: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the options as keyword arguments; profile values replace options that were not typed."""
        from_profile = {name: value for name, value in (profile or {}).items() if name not in self.given}
        typed = {name: value for name, value in self.typed.items() if value is not None and name not in from_profile}
        return {name: _value(name, value) for name, value in typed.items()} | from_profile

    def value(self, profile: Mapping[str, Any] | None = None, **defaults: Any) -> Any:
        """Return an instance of the dataclass; `defaults` apply where neither the user nor the profile sets a value."""
        return self.kind(**{**defaults, **self.keywords(profile)})


def typed_options(
    name: str,
    kind: Any,
    *,
    defaults: Mapping[str, Any] | None = None,
    without: Collection[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command-line option for every field of a dataclass to a command.

    Args:
        name: The command's parameter that receives the values, as `TypedOptions`.
        kind: The dataclass; each field's metadata contains its help text.
        defaults: Defaults for this command; they replace those of the dataclass.
        without: Fields that get no option.
    """
    changed = defaults or {}
    hints = typing.get_type_hints(kind)
    generated = [
        _parameter(
            field.name,
            hints[field.name],
            field.metadata["help"],
            changed.get(field.name, field.default),
            _PANELS.get(field.name, METHOD),
        )
        for field in fields(kind)
        if field.name not in without
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        known = inspect.signature(command).parameters
        context = [] if _CONTEXT.name in known else [_CONTEXT]

        @wraps(command)
        def run(**arguments: Any) -> None:
            source = arguments[_CONTEXT.name].get_parameter_source
            for parameter in context:
                del arguments[parameter.name]
            typed = {parameter.name: arguments.pop(parameter.name) for parameter in generated}
            given = frozenset(name for name in typed if source(name).name == "COMMANDLINE")
            command(**{name: TypedOptions(kind, typed, given)}, **arguments)

        annotations = typing.get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotations[parameter.name])
            for parameter in known.values()
            if parameter.name != name
        ]
        # The help lists the panels in the order of their first options.
        parameters = [*generated, *own, *context]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(name: str, hint: Any, description: str, default: Any, panel: str) -> inspect.Parameter:
    if name == "count_tokens":
        description += (
            " Values: approximate, words, characters, local (tokens of the local embedder), tiktoken:ENCODING or "
            "huggingface:PATH."
        )
        default = _APPROXIMATE
    elif name in _KEYS:
        description += " Separate several names with commas."
    elif name in _TEXTS:
        description += r" Write \n for a line break."
        default = default and default.replace("\n", r"\n")
    possible = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind: Any = next((kind for kind in possible if kind in (bool, int, float) or get_origin(kind) is Literal), str)
    annotation = Annotated[
        kind | None,
        typer.Option(
            *([_FLAGS[name]] if name in _FLAGS else []),
            help=description,
            rich_help_panel=panel,
            metavar="<choice>" if len("|".join([name, *map(str, get_args(kind))])) > _MAX_CHOICES_WIDTH else None,
            autocompletion=method_names if name in _METHODS else None,
        ),
    ]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(name: str, typed: Any) -> Any:
    """Convert the text that was typed for an option to its value."""
    if name == "count_tokens":
        return _counter(typed)
    if name in _KEYS and "," in typed:
        return tuple(part.strip() for part in typed.split(","))
    if name in _TEXTS:
        return typed.replace(r"\n", "\n").replace(r"\t", "\t")
    return typed


def _counter(typed: str) -> Callable[[str], int]:
    # Return this very function: contexts recognize it and mark their count as an approximation.
    if typed == _APPROXIMATE:
        return approximate_tokens
    try:
        return counter_of(typed)
    except ExperimentError as error:
        raise OptionError(f"count_tokens: {error}", typed) from error


@dataclass(frozen=True, kw_only=True)
class Indexing:
    """How files are split, embedded and indexed, and how the index is searched.

    Raises:
        OptionError: An option is invalid.
    """

    splitter: Splitter = option(
        "tokens",
        "How files are split: tokens or words (chunks of equal size), or recursive (at paragraphs, lines, words).",
    )
    chunk_size: int | None = option(
        None, "Chunk size in tokens or words. Default: 128 tokens, 300 words or (recursive) 1,000 tokens."
    )
    chunk_overlap: int | None = option(
        None, "Overlap of adjacent chunks in tokens or words. Default: none or (recursive) a tenth of the chunk size."
    )
    search: SearchKind = option(
        "dense",
        "How chunks are ranked: dense (cosine similarity), bm25 (keywords; embeds nothing) or hybrid (both, fused).",
    )
    embeddings: str = option(
        LOCAL,
        "The embedding model: local (a small model installed as a package) or PROVIDER:MODEL as in LangChain's "
        "init_embeddings, such as openai:text-embedding-3-small.",
    )
    index_cache: str | None = option(
        None,
        "A folder to cache the index and the pages of PDF files in, for later questions about the same files. It "
        "contains the text of your files; only you can read it.",
    )
    clear_index_cache: bool = option(
        default=False,
        description="First delete everything cached in the --index-cache folder, including the cache of other files.",
    )

    def __post_init__(self) -> None:
        for name in ("embeddings", "index_cache"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise OptionError(f"{name} must not be empty", value)
        if self.clear_index_cache and self.index_cache is None:
            raise OptionError(
                "--clear-index-cache requires --index-cache, the folder whose contents it deletes",
                self.clear_index_cache,
            )

    @property
    def split(self) -> Split:
        """The split settings, completed with the splitter's defaults."""
        return Split(self.splitter, self.chunk_size, self.chunk_overlap).complete()

    @property
    def needs_vectors(self) -> bool:
        """Whether ranking needs the vectors of all chunks."""
        return self.search != "bm25"


def profile_for_answers(path: str | None, *typed: TypedOptions) -> Profile:
    """Read the profile for answers and reject options that would have no effect; without a path it is empty."""
    if path is None:
        return Profile()
    profile = read_profile(path)
    if "stitch" in profile.context:
        # The check needs pydantic, which the extra `langchain` installs.
        try:
            from oprag.profile import check_stitching
        except ImportError as error:
            raise MissingExtraError("oprag ask", "cli") from error
        given = {name: options.typed[name] for options in typed for name in options.given}
        check_stitching(profile, path, given, "oprag ask")
    return profile


def context_options_of(options: TypedOptions, path: str | None) -> ContextOptions:
    """Return the options for printing a context as the profile's method would read it."""
    profile = Profile() if path is None else read_profile(path)
    context_options = options.value(profile.context_keywords(dict.fromkeys(options.given)))
    return profile.as_method_options().numbered(context_options)
