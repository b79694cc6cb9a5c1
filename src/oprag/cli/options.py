"""Options shared by several commands, and options generated from dataclass fields."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from itertools import chain
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import typer

from oprag._internal.tokens import approximate_tokens
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Splitter
from oprag.index.tokenizers import LOCAL, counter_named
from oprag.methods.registry import method_names
from oprag.options import option

__all__ = ["AS_JSON", "LIMITS", "MODEL", "OUTPUT", "Indexing", "Running", "declare", "typed_options"]

# Panels of the help. Panels with --x/--no-x options need short titles, or names are cut off at 80 columns.
MODEL, METHOD, OUTPUT, LIMITS = "Model", "Method", "Output", "Limits"
_OF_PANELS = {
    "Selection": "k max_candidates continuity token_budget count_tokens neighbors whole_source_tokens",
    "Thresholds": "similarity_threshold redundancy_threshold min_chunks",
    "Order": "order seed source_ranking on_missing_position on_uncertain source_key position_key",
    "Rendering": "stitch separator gap header",
    "Index": "splitter chunk_size chunk_overlap search embeddings",
    OUTPUT: "cite",
}
_PANELS = {name: panel for panel, names in _OF_PANELS.items() for name in names.split()}


def declare(description: str, *names: str, default: Any = None, panel: str | None = None, **settings: Any) -> Any:
    """Declare an option of a command; its name is that of the parameter, unless names are given."""
    return typer.Option(default, *names, help=description, rich_help_panel=panel, **settings)


AS_JSON = declare("Print the complete result as JSON.", "--json", default=False, panel=OUTPUT)
_NOT_TYPED = ("prompts", "condense", "empty_answer")  # no conversation, and prompts are too long for a shell
_KEYS = ("source_key", "position_key")
_TEXTS = ("separator", "gap", "header")
_METHODS = ("method", "inner_method")
_APPROXIMATE = "approximate"
_MAX_CHOICES_WIDTH = 36  # characters of an option name plus its choices; longer ones leave too little room for the help
# Typer's context, which tells typed options from defaults; Typer passes it to one parameter of a command.
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_CONTEXT = inspect.Parameter("typer_context", _KEYWORD, annotation=typer.Context)


def typed_options(
    *, without: Collection[str] = _NOT_TYPED, **kinds: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an option for each field of some dataclasses to a command, whose parameter gets those that were typed."""
    generated = {argument: _parameters(kind, without) for argument, kind in kinds.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            source = values.pop(_CONTEXT.name).get_parameter_source
            for argument, options in generated.items():
                given = {name: values.pop(name) for name in options}
                typed = {name: value for name, value in given.items() if source(name).name == "COMMANDLINE"}
                values[argument] = {name: _value(name, value) for name, value in typed.items()}
            command(**values)

        own = inspect.signature(command, eval_str=True).parameters.values()
        parts = [generated[one.name].values() if one.name in kinds else [one] for one in own]
        parameters = [*chain(*parts), _CONTEXT]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameters(kind: Any, without: Collection[str]) -> dict[str, inspect.Parameter]:
    hints = typing.get_type_hints(kind)
    return {one.name: _parameter(one, hints[one.name]) for one in fields(kind) if one.name not in without}


def _parameter(declared: Field[Any], hint: Any) -> inspect.Parameter:
    name = declared.name
    if "typer" in declared.metadata:
        return inspect.Parameter(name, _KEYWORD, default=declared.metadata["typer"], annotation=hint)
    description = declared.metadata["help"]
    default: Any = declared.default
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
    default = declare(
        description,
        default=default,
        panel=_PANELS.get(name, METHOD),
        metavar="<choice>" if len("|".join([name, *map(str, get_args(kind))])) > _MAX_CHOICES_WIDTH else None,
        autocompletion=method_names if name in _METHODS else None,
    )
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=kind | None)


def _value(name: str, typed: Any) -> Any:
    """Convert the text that was typed for an option to its value."""
    if name == "count_tokens":
        # Contexts recognize this very function and mark their count as an approximation.
        return approximate_tokens if typed == _APPROXIMATE else counter_named(typed)
    if name in _KEYS and "," in typed:
        return tuple(part.strip() for part in typed.split(","))
    if name in _TEXTS:
        return typed.replace(r"\n", "\n").replace(r"\t", "\t")
    return typed


@dataclass(frozen=True, kw_only=True)
class Indexing:
    """How files are split, embedded and indexed, and how the index is searched."""

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


def _shared(*declared: Any, default: Any = None, **settings: Any) -> Any:
    """Declare a field that is an option of several commands."""
    return field(default=default, metadata={"typer": declare(*declared, default=default, **settings)})


@dataclass(frozen=True, kw_only=True)
class Running:
    """How an experiment is run, and how much of its results is printed."""

    yes: bool = _shared("Skip the cost confirmation.", "--yes", "-y", default=False)
    retry_failed: bool = _shared("Retry questions that failed in an earlier run.", "--retry-failed", default=False)
    max_concurrency: int | None = _shared(
        "Maximum number of concurrent model calls. Default: 8, or that of FILE.", min=1, panel=LIMITS
    )
    limit_calls: int | None = _shared("Maximum number of model calls over all runs.", min=0, panel=LIMITS)
    limit_tokens: int | None = _shared(
        "Maximum number of model tokens, input plus output, over all runs.", min=0, panel=LIMITS
    )
    everything: bool = _shared(
        "Print all settings, and the report's tables: all metrics, all differences and all measurements.",
        "--all",
        default=False,
        panel=OUTPUT,
    )
    as_json: bool = field(default=False, metadata={"typer": AS_JSON})

    def changes(self, **limits: float | None) -> dict[str, Any]:
        """What these options, and further limits, change in an experiment."""
        limits = {"calls": self.limit_calls, "tokens": self.limit_tokens, **limits}
        changes: dict[str, Any] = {"limits": {name: limit for name, limit in limits.items() if limit is not None}}
        return changes if self.max_concurrency is None else {**changes, "max_concurrency": self.max_concurrency}
