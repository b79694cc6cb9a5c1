"""The context options and the validation of options that the adapters and the command line share.

`ContextOptions` declares the options; `oprag.adapters.fields` repeats them for pydantic. Unknown option names are
rejected with a hint by `as_context_options` here and by `OptionFields` there.
"""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, get_args

from oprag._internal.masking import describe
from oprag._internal.tokens import TokenCounter, approximate_tokens
from oprag.chunk import Chunk, Passage
from oprag.errors import OptionError, QueryError

__all__ = [
    "CANDIDATES",
    "HEADER_FIELDS",
    "NAME_HINTS",
    "NO_SEARCH",
    "OP_RAG",
    "OP_RAG_16K",
    "ContextOptions",
    "Header",
    "OnMissingPosition",
    "OnUncertain",
    "Order",
    "PositionKey",
    "SourceKey",
    "SourceRanking",
    "as_context_options",
    "check_bool",
    "check_choice",
    "check_cosine",
    "check_count",
    "check_names",
    "check_question",
    "check_text",
    "descriptions",
    "option",
    "plain_number",
    "refuse_options",
    "requires",
    "with_plain_numbers",
]

_NONE: Mapping[str, str] = MappingProxyType({})
CANDIDATES = 4  # for each chunk to keep, with continuity
_PLAIN = (str, int, float, bool, type(None))

Order = Literal["source", "rank", "reverse_rank", "edges", "random"]
SourceRankingName = Literal["best_first", "best_last", "score_sum", "name"]
SourceRanking = SourceRankingName | Callable[[Sequence[Chunk]], Any]
OnMissingPosition = Literal["last", "first", "drop", "error"]
OnUncertain = Literal["warn", "ignore", "error"]
SourceKey = str | tuple[str, ...] | Callable[[Chunk], Any]
PositionKey = str | tuple[str, ...] | Callable[[Chunk], Any]
Header = str | Callable[[Passage], str]

HEADER_FIELDS = ("number", "source", "section", "page", "start", "end", "rank")

NAME_HINTS = {
    **dict.fromkeys(("top_k", "top_n", "n_results", "limit"), "use k="),
    **dict.fromkeys(
        ("max_tokens", "max_tokens_limit", "max_context_tokens", "token_limit"),
        "use token_budget=, the maximum for the context",
    ),
    **dict.fromkeys(("similarity_cutoff", "score_threshold"), "use similarity_threshold=, a cosine similarity"),
    **dict.fromkeys(("tokenizer", "token_counter", "length_function", "get_num_tokens"), "use count_tokens="),
}
"""Hints for names that other packages use for these options."""


def option(default: Any, description: str, function: str = "") -> Any:
    """Declare a field with its description for all surfaces; `function` says what a function as its value does."""
    return dataclasses.field(default=default, metadata={"help": description, "function": function})


def descriptions(kind: Any) -> dict[str, str]:
    """Description of each option of a dataclass, including what a function as its value does."""
    return {
        field.name: field.metadata["help"]
        + (f" Or a function that {does}." if (does := field.metadata["function"]) else "")
        for field in dataclasses.fields(kind)
    }


@dataclass(frozen=True, kw_only=True)
class ContextOptions:
    """How retrieved chunks become a context: select, budget, order, stitch, render.

    The adapters and the command line take the names, defaults and validation of these options from here. The metadata
    of each field (`dataclasses.fields(ContextOptions)`) contains its description (`help`) and, if a function is allowed
    as the value, what the function does (`function`).

    Raises:
        OptionError: An option is invalid.
    """

    k: int | None = option(None, "Maximum number of chunks to keep, by rank.")
    max_candidates: int | None = option(
        None,
        "Number of candidates to retrieve before selection; by default the same as k, with continuity four times k.",
    )
    continuity: float = option(
        0.0,
        "How strongly to prefer chunks whose neighbors in the source were found, too: from 0 (not at all) to 1; start "
        "with 0.3.",
    )
    token_budget: int | None = option(None, "Maximum number of tokens in the rendered context.")
    count_tokens: TokenCounter = option(
        approximate_tokens,
        "How tokens are counted; by default approximately (UTF-8 bytes / 4).",
        "returns the number of tokens in a text",
    )
    order: Order = option(
        "source",
        "Order of the kept chunks: source (OP-RAG), rank (vanilla), reverse_rank, edges (best at both ends) or random.",
    )
    seed: int = option(0, "Seed of the random order.")
    source_ranking: SourceRanking = option(
        "best_first",
        "Order of the sources: best_first (by their best-ranked chunks), best_last (the reverse), score_sum (highest "
        "sum of scores first) or name (page2 before page10).",
        "receives the chunks of a source and returns the sort key of that source",
    )
    on_missing_position: OnMissingPosition = option(
        "last",
        "Where to put chunks without a position: last or first within their source; or drop them, or raise an error.",
    )
    on_uncertain: OnUncertain = option(
        "warn",
        "What to do if the order of chunks of a source is uncertain: warn, ignore it, or raise an error.",
    )
    source_key: SourceKey | None = option(
        None, "Metadata key that names the source, or a tuple of keys to try in order.", "returns the source of a chunk"
    )
    position_key: PositionKey | None = option(
        None,
        "Metadata key that contains the position, or a tuple of keys that form it together.",
        "returns the position of a chunk",
    )
    similarity_threshold: float | None = option(
        None, "Minimum cosine similarity to the question, between -1 and 1; the same scale for every store."
    )
    redundancy_threshold: float | None = option(
        None, "Drop chunks whose cosine similarity to a better-ranked kept chunk is at least this, between -1 and 1."
    )
    min_chunks: int = option(
        0,
        "Minimum number of chunks; if fewer pass the thresholds, rejected ones are added back by rank, redundant ones "
        "last.",
    )
    whole_source_tokens: int | None = option(
        None,
        "Take the whole source of a kept chunk if it has at most this number of tokens, where its chunks can be read.",
    )
    neighbors: int = option(0, "Number of adjacent chunks to add before and after each kept chunk, where available.")
    stitch: bool = option(default=True, description="Join chunks that touch or overlap, without repeating text.")
    separator: str = option("\n\n", "Text between two passages.")
    gap: str | None = option(
        None, "Text inserted between two passages of one source to mark skipped text, such as [...]."
    )
    header: Header | None = option(
        None,
        "Line above each passage; may contain {number}, {source}, {section}, {page}, {start}, {end} and {rank}.",
        "returns the line for a passage",
    )

    def __post_init__(self) -> None:
        with_plain_numbers(self)
        check_count("k", self.k)
        check_count("max_candidates", self.max_candidates)
        check_count("token_budget", self.token_budget)
        if self.k is not None and self.max_candidates is not None and self.max_candidates < self.k:
            raise OptionError(
                f"max_candidates must be at least k, got max_candidates={self.max_candidates} and k={self.k}",
                self.max_candidates,
            )
        self._check_continuity()
        check_cosine("similarity_threshold", self.similarity_threshold)
        check_cosine("redundancy_threshold", self.redundancy_threshold)
        check_count("min_chunks", self.min_chunks, optional=False, minimum=0)
        check_count("neighbors", self.neighbors, optional=False, minimum=0)
        check_count("whole_source_tokens", self.whole_source_tokens)
        for name in ("k", "max_candidates"):
            limit = getattr(self, name)
            if limit is not None and self.min_chunks > limit:
                raise OptionError(
                    f"min_chunks must be at most {name}, got min_chunks={self.min_chunks} and {name}={limit}",
                    self.min_chunks,
                )
        if not callable(self.count_tokens):
            raise OptionError(
                f"count_tokens must be a function of a text, got {describe(self.count_tokens)}", self.count_tokens
            )
        check_choice("order", self.order, get_args(Order))
        if type(self.seed) is not int:
            raise OptionError(f"seed must be an integer, got {describe(self.seed)}", self.seed)
        if not callable(self.source_ranking):
            check_choice("source_ranking", self.source_ranking, get_args(SourceRankingName), " or a function")
        check_choice("on_missing_position", self.on_missing_position, get_args(OnMissingPosition))
        check_choice("on_uncertain", self.on_uncertain, get_args(OnUncertain))
        check_key("source_key", self.source_key)
        check_key("position_key", self.position_key)
        check_bool("stitch", self.stitch)
        check_text("separator", self.separator)
        check_text("gap", self.gap, optional=True)
        _check_header(self.header)

    def _check_continuity(self) -> None:
        given = self.continuity
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= given <= 1:
            raise OptionError(f"continuity must be a number between 0 and 1, got {describe(given)}", given)
        if given and self.k is None and self.token_budget is None:
            raise OptionError(
                "continuity chooses among more candidates than are kept, so it requires k or token_budget", given
            )

    @property
    def candidates(self) -> int | None:
        """Number of candidates that are retrieved from a store; None if neither `max_candidates` nor `k` is set."""
        if self.max_candidates is not None or self.k is None:
            return self.max_candidates
        return CANDIDATES * self.k if self.continuity else self.k

    @property
    def reads_around(self) -> str:
        """The option that adds chunks around the kept ones, such as "neighbors=1"; empty if none does."""
        if self.neighbors:
            return f"neighbors={self.neighbors}"
        return "" if self.whole_source_tokens is None else f"whole_source_tokens={self.whole_source_tokens}"

    @property
    def shows_section(self) -> bool:
        """Whether the header is a template with `{section}`."""
        header = self.header
        return isinstance(header, str) and any(name == "section" for _, name, _, _ in Formatter().parse(header))

    @property
    def reads_sources(self) -> bool:
        """Whether more is read than the search returns: chunks around the kept ones, or the headings of sources."""
        return bool(self.reads_around) or self.shows_section

    @property
    def considered(self) -> int | None:
        """Number of retrieved chunks, best first, that are considered at all; None for all of them."""
        return self.candidates if self.continuity else self.max_candidates

    @property
    def needs_vectors(self) -> bool:
        """Whether a threshold is set."""
        return self.similarity_threshold is not None or self.redundancy_threshold is not None


def as_context_options(options: ContextOptions | None, changes: dict[str, Any]) -> ContextOptions:
    """The options, or the default ones, with changes."""
    if options is not None and not isinstance(options, ContextOptions):
        raise OptionError(f"expected oprag.ContextOptions, got {type(options).__name__}", options)
    check_names(changes, ContextOptions.__dataclass_fields__, NAME_HINTS)
    if options is None:
        return ContextOptions(**changes)
    return dataclasses.replace(options, **changes) if changes else options


def plain_number(value: Any) -> Any:
    """Convert a number, such as a NumPy scalar, to a built-in int or float; return other values unchanged."""
    if type(value) in _PLAIN or isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def with_plain_numbers(options: Any) -> None:
    """Convert all numbers among an object's attributes to built-in types, in place."""
    changed = {name: number for name, value in vars(options).items() if (number := plain_number(value)) is not value}
    vars(options).update(changed)


def requires(function: Any, parameter: str) -> bool:
    """Whether a function requires this parameter; one with a default, which may be bound on purpose, is optional."""
    try:
        found = inspect.signature(function).parameters.get(parameter)
    except (TypeError, ValueError):
        return False
    return found is not None and found.default is found.empty


def refuse_filter(name: str, function: Any, why: str) -> None:
    """Reject a function that requires the filter of the search, for a given reason why it is not available."""
    if requires(function, "filter"):
        raise OptionError(
            f"{name} is a function that requires filter, but {why}; bind one with functools.partial(function, "
            "filter=...)",
            function,
        )


def refuse_options(retriever: Any, options: Mapping[str, Any]) -> None:
    """Reject options beside a retriever of oprag."""
    if options:
        raise OptionError(
            f"the retriever is an OrderPreservingRetriever, which has its own options; set {', '.join(options)} there",
            retriever,
        )


def check_count(name: str, value: Any, *, optional: bool = True, minimum: int = 1) -> None:
    """Reject anything but an integer >= `minimum`."""
    if (value is None and optional) or (type(value) is int and value >= minimum):
        return
    raise OptionError(
        f"{name} must be an integer >= {minimum}{' or None' if optional else ''}, got {describe(value)}", value
    )


def check_cosine(name: str, value: Any, *, optional: bool = True) -> None:
    """Reject anything but a number between -1 and 1."""
    # NaN fails the comparison; converting huge integers to floats would raise.
    if (value is None and optional) or (
        type(value) is not bool and isinstance(value, Real) and -1 <= value <= 1  # type: ignore[operator]
    ):
        return
    raise OptionError(
        f"{name} must be a number between -1 and 1{' or None' if optional else ''}, got {describe(value)}",
        value,
    )


def check_choice(name: str, value: Any, choices: Iterable[str], also: str = "") -> None:
    """Reject anything but one of these strings."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}{also}, got {describe(value)}", value)


def check_bool(name: str, value: Any) -> None:
    """Reject anything but True and False."""
    if type(value) is not bool:
        raise OptionError(f"{name} must be True or False, got {describe(value)}", value)


def check_text(name: str, value: Any, *, optional: bool = False) -> None:
    """Reject anything but a string."""
    if not isinstance(value, str) and not (optional and value is None):
        raise OptionError(f"{name} must be a string{' or None' if optional else ''}, got {describe(value)}", value)


def check_names(
    options: Iterable[str], names: Collection[str], name_hints: Mapping[str, str] = _NONE, *, what: str = "option"
) -> None:
    """Reject unknown option names, with a hint for names of other packages, or the closest match."""
    for name in options:
        if name not in names:
            if name in name_hints:
                raise OptionError(f"unknown {what} {name!r}; {name_hints[name]}", name)
            import difflib

            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(names) or 'none'}"
            raise OptionError(f"unknown {what} {name!r}; {hint}", name)


def check_key(name: str, value: Any) -> None:
    """Reject anything but a metadata key, a tuple of keys, a function or None."""
    if value is None or callable(value) or (isinstance(value, str) and value):
        return
    if isinstance(value, tuple) and value and all(isinstance(part, str) and part for part in value):
        return
    raise OptionError(f"{name} must be a metadata key, a tuple of keys or a function, got {describe(value)}", value)


def _check_header(header: Any) -> None:
    if header is None or callable(header):
        return
    if not isinstance(header, str):
        raise OptionError(f"header must be a string, a function or None, got {describe(header)}", header)
    # No attribute access, conversions or widths: a template may come from another person's profile.
    try:
        plain = all(
            name is None or (name in HEADER_FIELDS and not spec and conversion is None)
            for _, name, spec, conversion in Formatter().parse(header)
        )
    except ValueError:
        plain = False
    if not plain:
        expected = ", ".join(f"{{{field}}}" for field in HEADER_FIELDS)
        raise OptionError(f"header may contain {expected} (write {{{{ for a brace), got {describe(header)}", header)


OP_RAG = ContextOptions(k=128, separator="")
"""The settings of the OP-RAG paper (arXiv 2409.01666), for chunks from `split_tokens(chunk_size=128)`."""

NO_SEARCH: dict[str, Any] = {
    "k": None,
    "max_candidates": None,
    "continuity": 0.0,
    "similarity_threshold": None,
    "redundancy_threshold": None,
    "min_chunks": 0,
    "neighbors": 0,
    "whole_source_tokens": None,
}
"""The options of a search, with the values for chunks that are already selected: none is dropped or added."""

OP_RAG_16K = {"k": 128, "token_budget": 16_384}
"""Defaults for searching a store or an index, instead of those of `ContextOptions`: OP-RAG-16K of the paper."""


def check_question(question: Any) -> None:
    """Reject a question that is not a string, or contains only whitespace."""
    if not isinstance(question, str):
        raise QueryError(f"the question must be a string, got {type(question).__name__}", question)
    if not question or question.isspace():
        raise QueryError("the question is empty", question)
