"""The command `oprag ask`: answers a question about files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oprag.chunk import counted
from oprag.cli.console import NAME_WIDTH, console, echo_json, print_status
from oprag.cli.context import characters_of
from oprag.cli.index import Sources, index_sources, read_sources
from oprag.cli.options import (
    METHOD,
    MODEL,
    AsJson,
    Explain,
    Files,
    Indexing,
    ProfilePath,
    Question,
    TypedOptions,
    profile_for_answers,
    typed_options,
)
from oprag.compare.data.data_set import whole_text
from oprag.compare.providers.chat_models import load_chat_model
from oprag.compare.providers.names import LOCAL
from oprag.compare.providers.provider_embedder import embedder_of
from oprag.embedding.embedder import DualEncoder
from oprag.errors import MissingExtraError, OptionError
from oprag.masking import safe, shown
from oprag.methods.answer import Answer
from oprag.methods.comparison import Comparison
from oprag.methods.options import MethodOptions
from oprag.methods.registry import check_needs
from oprag.options import OP_RAG_16K, ContextOptions, check_question
from oprag.text_table import one_line

if TYPE_CHECKING:
    from oprag.langchain.chain import OrderPreservingChain

__all__ = ["ask", "show_answer", "stream_answer"]

# Small, because the packaged model reads only a few hundred tokens per second on two cores.
_LOCAL_DEFAULTS = {"k": 8, "token_budget": 1_000}


@typed_options("options", ContextOptions, defaults={"k": None, "token_budget": None})
@typed_options("indexed", Indexing)
@typed_options("how", MethodOptions, without=("prompts", "condense", "empty_answer"))
def ask(
    options: TypedOptions,
    indexed: TypedOptions,
    how: TypedOptions,
    files: Files,
    question: Question,
    profile: ProfilePath = None,
    model: Annotated[
        str,
        typer.Option(
            help="PROVIDER:MODEL as in LangChain's init_chat_model, such as openai:gpt-5-mini, or "
            f"{LOCAL} (a very small packaged model). Default limits: k {OP_RAG_16K['k']} and token_budget "
            f"{OP_RAG_16K['token_budget']:,}; with {LOCAL}, {_LOCAL_DEFAULTS['k']} and "
            f"{_LOCAL_DEFAULTS['token_budget']:,}.",
            rich_help_panel=MODEL,
        ),
    ] = LOCAL,
    base_url: Annotated[
        str | None, typer.Option(help="Base URL of the server, instead of the provider's.", rich_help_panel=MODEL)
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="The temperature of the model.", rich_help_panel=MODEL)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of tokens in a reply.", rich_help_panel=MODEL)
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated methods to compare; prints the cost and the answer of each.", rich_help_panel=METHOD
        ),
    ] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(help="An answer to choose from; repeat the option for each choice.", rich_help_panel=METHOD),
    ] = None,
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Answer a QUESTION about FILES, from their passages in document order."""
    check_question(question)
    methods = [] if compare is None else [name.strip() for name in compare.split(",")]
    if model == LOCAL and base_url is not None:
        raise OptionError(
            f"--base-url requires --model PROVIDER:MODEL, got --model {LOCAL}; set --model or remove --base-url",
            base_url,
        )
    defaults = _LOCAL_DEFAULTS if model == LOCAL else OP_RAG_16K
    settings = profile_for_answers(profile, options, how)
    context_options = options.value(settings.context_keywords(dict.fromkeys(options.given)), **defaults)
    indexing = indexed.value()
    sources = read_sources(files, indexing)
    chain = _make_chain(
        sources,
        context_options,
        how.keywords(settings.method),
        model=model,
        model_settings={"base_url": base_url, "temperature": temperature, "max_tokens": max_tokens},
        indexing=indexing,
        methods=methods,
    )
    if compare is not None:
        comparison = chain.compare(question, methods, choices=choice or ())
        if as_json:
            echo_json([answer.to_dict() for answer in comparison])
            return
        _show_comparison(comparison)
        for answer in comparison if explain else ():
            typer.echo(f"\n{answer.explain()}")
        return
    if as_json:
        echo_json(chain.answer(question, choices=choice or ()).to_dict())
        return
    answer = stream_answer(chain, question, choice or ())
    show_answer(answer)
    if explain:
        typer.echo(f"\n{answer.explain()}")


def _make_chain(
    sources: Sources,
    context_options: ContextOptions,
    how: Mapping[str, Any],
    *,
    model: str,
    model_settings: Mapping[str, Any],
    indexing: Indexing,
    methods: Sequence[str],
) -> OrderPreservingChain:
    """Make a chain over an index of these sources; `methods`, if any, replace the method in `how`."""
    try:
        from oprag.langchain import DocumentIndexRetriever, OrderPreservingChain, OrderPreservingRetriever
    except MissingExtraError as error:
        raise MissingExtraError("oprag ask", "cli") from error
    # Fail before loading a model and embedding the files.
    options = MethodOptions(**how)
    for one in [replace(options, method=method) for method in methods] or [options]:
        check_needs(one, embeddings=True, read_source=True)
    given = {name: value for name, value in model_settings.items() if value is not None}
    llm = load_chat_model(model, given, feature="oprag ask")
    index = index_sources(sources, indexing)
    # The embedder is loaded lazily, because most methods embed nothing.
    name = indexing.embeddings
    embeddings = DualEncoder(
        name,
        lambda texts: embedder_of(name).embed_questions(texts),
        lambda texts: embedder_of(name).embed_documents(texts),
    )
    # Avoid the warning for a document with fewer chunks than k.
    k = None if (context_options.k or 0) > len(index) else context_options.k
    found = DocumentIndexRetriever(index=index, k=context_options.candidates or len(index), search=indexing.search)
    chain: OrderPreservingChain = OrderPreservingChain(
        llm=llm,
        retriever=OrderPreservingRetriever(
            retriever=found,
            # An index for bm25 has no embedder.
            embeddings=embeddings if index.embedder is None else None,
            **{**vars(context_options), "k": k, "stitch": False},
        ),
        embeddings=embeddings,
        read_source={name: whole_text(text) for name, text in sources.items()},
        **how,
    )
    return chain


def stream_answer(chain: OrderPreservingChain, question: str, choices: Sequence[str]) -> Answer:
    """Print the answer while the model generates it, and return it."""
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
    """Print the citations, calls, tokens and time of the answer."""
    for one in answer.citations:
        name = one_line(safe(shown(one.source or "(unknown source)", NAME_WIDTH)))
        span = "" if one.span is None else f", {characters_of(one.span)}"
        console().print(f"[{one.number}] {name}{span}")
    usage = answer.usage
    about = " (estimated)" if usage.estimated else ""
    route = f", route {answer.route}" if answer.route else ""
    calls = counted(len(answer.calls), "call")
    print_status(
        f"── {answer.method}{route}: {calls}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{about}, "
        f"{answer.seconds:.1f} s",
        "bold",
    )
    for note in answer.notes:
        print_status(f"Note: {note}", "yellow")


def _show_comparison(comparison: Comparison) -> None:
    """Print a table with the cost of each method, cut off at the width of the terminal, then the whole answers."""
    out = console()
    for line in str(comparison).splitlines():
        out.print(safe(line), soft_wrap=False, no_wrap=True, overflow="ellipsis")
    for answer in comparison:
        out.print(f"\n── {answer.method}", style="bold")
        out.print(safe(answer.text).strip())
        for note in answer.notes:
            out.print(f"Note: {safe(note)}", style="yellow")
