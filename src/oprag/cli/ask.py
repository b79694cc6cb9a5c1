"""The command `oprag ask`: prints the passages of files for a question, or answers it from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from oprag.assembly.stitch import Passage
from oprag.chunk import Span, counted
from oprag.cli.console import NAME_WIDTH, console, echo_json, print_status
from oprag.cli.index import Sources, embeddings_of, index_sources, read_sources, retriever_of
from oprag.cli.options import METHOD, MODEL, OUTPUT, AsJson, Indexing, TypedOptions, typed_options
from oprag.compare.data.data_set import whole_text
from oprag.compare.providers.chat_models import load_chat_model
from oprag.compare.providers.names import LOCAL
from oprag.context import Context
from oprag.errors import OptionError
from oprag.masking import safe, shown
from oprag.methods.answer import Answer
from oprag.methods.comparison import Comparison
from oprag.methods.options import MethodOptions
from oprag.methods.registry import check_needs
from oprag.options import OP_RAG_16K, ContextOptions, check_question
from oprag.profile import Profile, check_stitching, read_profile
from oprag.text_table import one_line

if TYPE_CHECKING:
    from oprag.langchain.chain import OrderPreservingChain

__all__ = ["ask", "place_of", "show_answer", "stream_answer"]

# Small, because the packaged model reads only a few hundred tokens per second on two cores.
_LOCAL_DEFAULTS = {"k": 8, "token_budget": 1_000}


@typed_options("options", ContextOptions)
@typed_options("indexed", Indexing)
@typed_options("how", MethodOptions, without=("prompts", "condense", "empty_answer"))
def ask(
    options: TypedOptions,
    indexed: TypedOptions,
    how: TypedOptions,
    files: Annotated[
        list[str], typer.Argument(help="Text, Markdown (both UTF-8) or PDF files; - reads standard input.")
    ],
    question: Annotated[str, typer.Argument(help="The question.")],
    profile: Annotated[
        str | None, typer.Option(help="A profile, such as oprag.toml; command-line options take precedence over it.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model that answers: PROVIDER:MODEL as in LangChain's init_chat_model, such as openai:gpt-5-mini, "
            f"or {LOCAL} (a very small packaged model). Without a model, the passages are printed. Default limits: k "
            f"{OP_RAG_16K['k']} and token_budget {OP_RAG_16K['token_budget']:,}; with {LOCAL}, {_LOCAL_DEFAULTS['k']} "
            f"and {_LOCAL_DEFAULTS['token_budget']:,}.",
            rich_help_panel=MODEL,
        ),
    ] = None,
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
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also explain the context: which chunks were kept, which were dropped and why.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Print the passages of FILES for a QUESTION in document order, or with --model, answer it from them.

    The options of the method and of the model require --model.
    """
    check_question(question)
    model_settings = {"base_url": base_url, "temperature": temperature, "max_tokens": max_tokens}
    if model is None:
        _check_for_answers_only(how, {**model_settings, "compare": compare, "choice": choice or None})
    if model == LOCAL and base_url is not None:
        raise OptionError(
            f"--base-url requires --model PROVIDER:MODEL, got --model {LOCAL}; set --model or remove --base-url",
            base_url,
        )
    settings = Profile() if profile is None else read_profile(profile)
    defaults = _LOCAL_DEFAULTS if model == LOCAL else OP_RAG_16K
    context_options = options.value(settings.context_keywords(dict.fromkeys(options.given)), **defaults)
    indexing = indexed.value()
    if model is None:
        # As the profile's method would read it.
        context_options = settings.as_method_options().numbered(context_options)
        retriever = retriever_of(index_sources(read_sources(files), indexing), context_options, indexing)
        context = retriever.get_context(question, context_options=replace(context_options, k=retriever.k))
        _show_context(question, context, as_json=as_json, explain=explain)
        return
    given = {name: typed.typed[name] for typed in (options, how) for name in typed.given}
    check_stitching(settings, profile or "", given, "oprag ask")
    methods = [] if compare is None else [name.strip() for name in compare.split(",")]
    chain = _make_chain(
        read_sources(files),
        context_options,
        how.keywords(settings.method),
        model=model,
        model_settings=model_settings,
        indexing=indexing,
        methods=methods,
    )
    if compare is not None:
        _show_comparison(chain.compare(question, methods, choices=choice or ()), as_json=as_json, explain=explain)
    elif as_json:
        echo_json(chain.answer(question, choices=choice or ()).to_dict())
    else:
        answer = stream_answer(chain, question, choice or ())
        show_answer(answer)
        if explain:
            typer.echo(f"\n{answer.explain()}")


def _check_for_answers_only(how: TypedOptions, others: Mapping[str, Any]) -> None:
    """Reject options that have no effect without a model."""
    given = [*sorted(how.given), *(name for name, value in others.items() if value is not None)]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise OptionError(f"without --model only the passages are printed; set --model or remove {names}", given)


def _show_context(question: str, context: Context, *, as_json: bool, explain: bool) -> None:
    """Print the passages in order, each below its source and character span."""
    if as_json:
        echo_json({"question": question, **context.to_dict()})
        return
    out = console()
    for number, passage in enumerate(context.passages, 1):
        out.print(f"── {number}  {place_of(passage)}", style="bold")
        out.print(Text(safe(passage.text.strip("\n"))))
    approximate = " (approximation)" if context.tokens_are_approximate else ""
    out.print(
        f"── {counted(len(context.kept), 'chunk')} in {counted(len(context.passages), 'passage')}, "
        f"{context.tokens:,} tokens{approximate}, order {context.options.order}, {len(context.dropped)} dropped",
        style="bold",
    )
    if explain:
        typer.echo(f"\n{context.explain()}")


def place_of(passage: Passage) -> str:
    """Return the source, character spans and ranks of a passage on one line."""
    where = one_line(safe(shown(passage.source or "(unknown source)", NAME_WIDTH)))
    if passage.spans:
        where += f"  {_characters(passage.spans[0], passage.spans[-1])}"
    ranks = sorted(chunk.rank for chunk in passage.chunks)
    return f"{where}  {'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def _characters(first: Span, last: Span) -> str:
    """Describe the character range, with pages, from the start of one span to the end of another."""
    if first.page != last.page:
        return f"page {first.page}, character {first.start:,}, to page {last.page}, character {last.end:,}"
    page = "" if first.page is None else f"page {first.page}, "
    return safe(f"{page}characters {first.start:,}–{last.end:,}")


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
    from oprag.langchain import OrderPreservingChain

    # Fail before loading a model and embedding the files.
    options = MethodOptions(**how)
    for one in [replace(options, method=method) for method in methods] or [options]:
        check_needs(one, embeddings=True, read_source=True)
    given = {name: value for name, value in model_settings.items() if value is not None}
    llm = load_chat_model(model, given, feature="oprag ask")
    chain: OrderPreservingChain = OrderPreservingChain(
        llm=llm,
        retriever=retriever_of(index_sources(sources, indexing), context_options, indexing),
        # Loaded lazily, because most methods embed nothing.
        embeddings=embeddings_of(indexing),
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
        span = "" if one.span is None else f", {_characters(one.span, one.span)}"
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


def _show_comparison(comparison: Comparison, *, as_json: bool, explain: bool) -> None:
    """Print a table with the cost of each method, cut off at the width of the terminal, then the whole answers."""
    if as_json:
        echo_json([answer.to_dict() for answer in comparison])
        return
    out = console()
    for line in str(comparison).splitlines():
        out.print(safe(line), soft_wrap=False, no_wrap=True, overflow="ellipsis")
    for answer in comparison:
        out.print(f"\n── {answer.method}", style="bold")
        out.print(safe(answer.text).strip())
        for note in answer.notes:
            out.print(f"Note: {safe(note)}", style="yellow")
    for answer in comparison if explain else ():
        typer.echo(f"\n{answer.explain()}")
