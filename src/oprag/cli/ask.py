"""Answering a question about files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from oprag.cli.indexing import LOCAL, Indexing
from oprag.cli.reading import Sources, whole_texts
from oprag.cli.show import characters_of, console, error_console
from oprag.cli.working import index_sources
from oprag.compare.providers.chat_models import load_chat_model
from oprag.compare.providers.local_model import LOCAL_DEFAULTS
from oprag.compare.providers.provider_embedder import EmbedderOnDemand
from oprag.errors import MissingExtraError, OptionError
from oprag.masking import safe
from oprag.methods.answer import Answer
from oprag.methods.comparison import Comparison
from oprag.methods.options import MethodOptions
from oprag.methods.registry import check_needs
from oprag.options import OP_RAG_16K, ContextOptions

if TYPE_CHECKING:
    from oprag.langchain.chain import OrderPreservingChain

__all__ = ["Model", "make_chain", "show_answer", "show_comparison", "stream_answer"]


@dataclass(frozen=True)
class Model:
    """Which model answers.

    Attributes:
        name: "local", or PROVIDER:MODEL as LangChain's `init_chat_model` takes it.
        base_url: The address of a server that speaks the provider's protocol.
        temperature: The temperature, where one was given.
        max_tokens: The longest reply, where one was given.
    """

    name: str
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def defaults(self) -> Mapping[str, Any]:
        """What stands in place of the defaults of `ContextOptions`."""
        return LOCAL_DEFAULTS if self.name == LOCAL else OP_RAG_16K

    def load(self) -> Any:
        """The chat model.

        Raises:
            MissingExtraError: LangChain, or a piece of the local model, is not installed.
            OptionError: LangChain knows no such model, its provider's package or key is missing, or it knows no such
                setting.
        """
        given = {"base_url": self.base_url, "temperature": self.temperature, "max_tokens": self.max_tokens}
        settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.name == LOCAL and self.base_url is not None:
            raise OptionError(f"--base-url goes with PROVIDER:MODEL, and not with --model {LOCAL}", self.base_url)
        return load_chat_model(self.name, settings, feature="oprag ask")


def make_chain(
    model: Model,
    sources: Sources,
    context_options: ContextOptions,
    how: Mapping[str, Any],
    *,
    indexing: Indexing,
    methods: Sequence[str] = (),
) -> OrderPreservingChain:
    """A chain over an index of these sources.

    Args:
        model: The model.
        sources: The texts, or pages, by their names.
        context_options: How contexts are made.
        how: The options of the method.
        indexing: How the texts are split and searched.
        methods: The methods that will be compared, in place of the one in `how`.

    Raises:
        MissingExtraError: LangChain is not installed.
        OptionError: An option has a value that it cannot have.
    """
    try:
        from oprag.langchain import DocumentIndexRetriever, OrderPreservingChain, OrderPreservingRetriever
    except MissingExtraError as error:
        raise MissingExtraError("oprag ask", "ask") from error
    # Before a model is loaded and a book embedded.
    options = MethodOptions(**how)
    for one in [replace(options, method=method) for method in methods] or [options]:
        check_needs(one, embeddings=True, read_source=True)
    llm = model.load()
    index = index_sources(sources, indexing)
    embeddings = EmbedderOnDemand(indexing.embeddings)
    found = DocumentIndexRetriever(
        index=index, k=context_options.max_candidates or context_options.k or len(index), search=indexing.search
    )
    chain: OrderPreservingChain = OrderPreservingChain(
        llm=llm,
        retriever=OrderPreservingRetriever(
            retriever=found,
            # An index that is searched by words has no embedder of its own.
            embeddings=embeddings if index.embedder is None else None,
            **_changed(context_options, len(index)),
        ),
        embeddings=embeddings,
        read_source=whole_texts(sources),
        **how,
    )
    return chain


def _changed(context_options: ContextOptions, chunks: int) -> dict[str, Any]:
    """The options for the retriever; a document with fewer chunks than k is no reason for a warning."""
    return vars(context_options) | {
        "k": None if context_options.k is not None and context_options.k > chunks else context_options.k,
        "stitch": False,
    }


def stream_answer(chain: OrderPreservingChain, question: str, choices: Sequence[str]) -> Answer:
    """Print the answer as it is written."""
    out = console()
    begun = False
    try:
        for piece in chain.stream_answer(question, choices=choices):
            begun = True
            if isinstance(piece, Answer):
                return piece
            out.print(safe(piece), end="")
    finally:
        if begun:
            out.print()
    raise AssertionError("the answer comes last")


def show_answer(answer: Answer) -> None:
    """Print what the answer took, and its citations."""
    for one in answer.citations:
        span = "" if one.span is None else f", {characters_of(one.span)}"
        console().print(f"[{one.number}] {safe(one.source or '(unknown source)')}{span}")
    usage = answer.usage
    about = " (estimated)" if usage.estimated else ""
    route = f", route {answer.route}" if answer.route else ""
    calls = "1 call" if len(answer.calls) == 1 else f"{len(answer.calls)} calls"
    error_console().print(
        f"── {answer.method}{route}: {calls}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{about}, "
        f"{answer.seconds:.1f} s",
        style="bold",
        markup=False,
        highlight=False,
    )
    for note in answer.notes:
        error_console().print(f"Note: {safe(note)}", style="yellow", markup=False, highlight=False)


def show_comparison(comparison: Comparison) -> None:
    """Print what several methods took as a table, and their answers below it."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in ("method", "calls", "tokens in", "tokens out", "seconds", "passages"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    rows = comparison.rows()
    for row in rows:
        about = "~" if row["estimated"] else ""
        table.add_row(
            row["method"],
            str(row["calls"]),
            f"{about}{row['tokens_in']:,}",
            f"{about}{row['tokens_out']:,}",
            f"{row['seconds']:.1f}",
            str(row["passages"]),
        )
    out = console()
    out.print(table)
    for row in rows:
        out.print(f"── {row['method']}", style="bold")
        out.print(safe(row["answer"]).strip())
        for note in row["notes"]:
            out.print(f"Note: {safe(note)}", style="yellow")
