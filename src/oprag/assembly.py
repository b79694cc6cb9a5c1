"""The options of a context, declared once for every surface."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal, get_args

from oprag.checks import check_bool, check_choice, check_cosine, check_count, check_names, check_text, option
from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.position import PositionKey
from oprag.source import SourceKey
from oprag.stitch import Passage
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = [
    "HEADER_FIELDS",
    "OP_RAG_16K",
    "PAPER",
    "UNCUT",
    "Assembly",
    "Header",
    "MissingPosition",
    "Order",
    "SourceOrder",
    "as_assembly",
    "everything_kept",
]

Order = Literal["source", "rank", "reverse", "edges", "random"]
SourceOrderName = Literal["best", "best_last", "total", "natural"]
SourceOrder = SourceOrderName | Callable[[Sequence[Chunk]], Any]
MissingPosition = Literal["last", "first", "drop", "error"]
Header = str | Callable[[Passage], str]

HEADER_FIELDS = ("number", "source", "page", "start", "end", "rank")


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """How retrieved chunks become a context: select, budget, order, stitch, render.

    This is the one declaration of these options; the adapters and the command line take their names, defaults and
    checks from here. In the metadata of each field (`dataclasses.fields(Assembly)`) stand a description (`help`) and,
    where a function can take its place, what that does (`function`).

    Raises:
        OptionError: An option has a value that it cannot have.
    """

    k: int | None = option(None, "The most chunks to keep, the best-ranked ones.")
    fetch_k: int | None = option(None, "How many candidates to consider before the selection; k by default.")
    token_budget: int | None = option(None, "The most tokens that the rendered context may have.")
    count_tokens: TokenCounter = option(
        approximate_tokens, "How tokens are counted; by default an approximation, UTF-8 bytes / 4.", "counts a text"
    )
    order: Order = option(
        "source", "How the kept chunks stand: source (OP-RAG), rank (vanilla), reverse, edges or random."
    )
    seed: int = option(0, "The seed of the random order.")
    source_order: SourceOrder = option(
        "best",
        "How sources follow each other: best (the one with the best chunk first), best_last, total or natural.",
        "gives the sort key of a source's chunks",
    )
    missing_position: MissingPosition = option(
        "last", "What happens to a chunk without a position: last or first in its source, drop, or error."
    )
    source_key: SourceKey | None = option(
        None, "The metadata key that names the source, or several to try in turn.", "names the source of a chunk"
    )
    position_key: PositionKey | None = option(
        None, "The metadata key that gives the position, or several that form it together.", "gives it for a chunk"
    )
    similarity_threshold: float | None = option(
        None, "The least cosine of a chunk and the question, from -1 to 1; one scale, whatever the store."
    )
    redundancy_threshold: float | None = option(
        None, "A chunk goes when its cosine with a better-ranked one that is kept is at least this, from -1 to 1."
    )
    min_keep: int = option(
        0, "The fewest chunks to keep, whatever the thresholds say; best first those come back that repeat nothing."
    )
    neighbors: int = option(0, "How many chunks before and after each kept one to fill in, where they can be had.")
    stitch: bool = option(default=True, description="Join chunks that touch or overlap, without repeating text.")
    separator: str = option("\n\n", "What stands between two passages.")
    gap: str | None = option(None, "A mark between two passages of one source, such as [...].")
    header: Header | None = option(
        None,
        "A line above each passage, which may hold {number}, {source}, {page}, {start}, {end} and {rank}.",
        "writes it",
    )

    def __post_init__(self) -> None:
        check_count("k", self.k)
        check_count("fetch_k", self.fetch_k)
        check_count("token_budget", self.token_budget)
        if self.k is not None and self.fetch_k is not None and self.fetch_k < self.k:
            raise OptionError(f"fetch_k must be at least k, got fetch_k={self.fetch_k} and k={self.k}", self.fetch_k)
        check_cosine("similarity_threshold", self.similarity_threshold)
        check_cosine("redundancy_threshold", self.redundancy_threshold)
        check_count("min_keep", self.min_keep, optional=False, least=0)
        check_count("neighbors", self.neighbors, optional=False, least=0)
        for name in ("k", "fetch_k"):
            most = getattr(self, name)
            if most is not None and self.min_keep > most:
                raise OptionError(
                    f"min_keep must be at most {name}, got min_keep={self.min_keep} and {name}={most}", self.min_keep
                )
        if not callable(self.count_tokens):
            raise OptionError(
                f"count_tokens must be a function of a text, got {self.count_tokens!r}", self.count_tokens
            )
        check_choice("order", self.order, get_args(Order))
        if type(self.seed) is not int:
            raise OptionError(f"seed must be a whole number, got {self.seed!r}", self.seed)
        if not callable(self.source_order):
            check_choice("source_order", self.source_order, get_args(SourceOrderName), " or a function")
        check_choice("missing_position", self.missing_position, get_args(MissingPosition))
        check_key("source_key", self.source_key)
        check_key("position_key", self.position_key)
        check_bool("stitch", self.stitch)
        check_text("separator", self.separator)
        check_text("gap", self.gap, optional=True)
        _check_header(self.header)

    @property
    def needs_vectors(self) -> bool:
        """Whether a threshold is set."""
        return self.similarity_threshold is not None or self.redundancy_threshold is not None


def as_assembly(assembly: Assembly | None, options: dict[str, Any]) -> Assembly:
    """The assembly with these options changed.

    Raises:
        OptionError: `assembly` is no `Assembly`, or an option is unknown or has a value that it cannot have.
    """
    if assembly is not None and not isinstance(assembly, Assembly):
        raise OptionError(f"expected an oprag.Assembly, got {type(assembly).__name__}", assembly)
    check_names(options, Assembly.__dataclass_fields__)
    if assembly is None:
        return Assembly(**options)
    return dataclasses.replace(assembly, **options) if options else assembly


def everything_kept(assembly: Assembly) -> Assembly:
    """The assembly, but for thresholds that keep everything and ask for vectors, and without a budget."""
    changes = {"similarity_threshold": -1, "redundancy_threshold": None, "token_budget": None, "neighbors": 0}
    return as_assembly(assembly, changes)


def check_key(name: str, value: Any) -> None:
    """Refuse what is no `source_key` or `position_key`.

    Raises:
        OptionError: The value is no metadata key, no tuple of them and no function.
    """
    if value is None or callable(value) or (isinstance(value, str) and value):
        return
    if isinstance(value, tuple) and value and all(isinstance(part, str) and part for part in value):
        return
    raise OptionError(f"{name} must be a metadata key, a tuple of them or a function, got {value!r}", value)


def _check_header(header: Any) -> None:
    if header is None or callable(header):
        return
    if not isinstance(header, str):
        raise OptionError(f"header must be a string, a function or None, got {header!r}", header)
    # No attributes, conversions or widths: a template may come from a profile that somebody else wrote.
    try:
        plain = all(
            name is None or (name in HEADER_FIELDS and not spec and conversion is None)
            for _, name, spec, conversion in Formatter().parse(header)
        )
    except ValueError:
        plain = False
    if not plain:
        expected = ", ".join(f"{{{field}}}" for field in HEADER_FIELDS)
        raise OptionError(f"header may hold {expected} (write {{{{ for a brace), got {header!r}", header)


PAPER = Assembly(k=128, separator="")
"""The setting of the OP-RAG paper (arXiv 2409.01666), to be used with `split_tokens(size=128)`."""

UNCUT = {
    "k": None,
    "fetch_k": None,
    "token_budget": None,
    "similarity_threshold": None,
    "redundancy_threshold": None,
    "neighbors": 0,
}
"""What stands in place of other options where chunks were chosen before: nothing more is left out or filled in."""

OP_RAG_16K = {"k": 128, "token_budget": 16_384}
"""What stands in place of the defaults of `Assembly` where a store or an index is searched: the paper's OP-RAG-16K."""
