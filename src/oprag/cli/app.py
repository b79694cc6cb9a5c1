"""The commands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from oprag._version import __version__
from oprag.cli.ask import Model, make_chain, show_answer, show_comparison, stream_answer
from oprag.cli.compare import compare
from oprag.cli.demo import QUESTION, show_demo
from oprag.cli.indexing import LOCAL, Indexing
from oprag.cli.map import MAP, lengths_of, show_map, write_svg
from oprag.cli.options import TypedOptions, typed_options
from oprag.cli.profile import ProfilePath, context_options_of, profile_for_answers
from oprag.cli.reading import read_sources
from oprag.cli.report import report
from oprag.cli.show import show_context
from oprag.cli.sweep import sweep
from oprag.cli.telling import clear_errors, echo_json
from oprag.cli.working import context_of
from oprag.compare.document_map import map_of
from oprag.compare.providers.local_model import LOCAL_DEFAULTS
from oprag.files.writing import check_target
from oprag.masking import safe
from oprag.methods.options import MethodOptions
from oprag.options import OP_RAG_16K, ContextOptions, check_question

__all__ = ["app"]

FILES = "Text or Markdown files, UTF-8, or PDF; - reads standard input."

app = typer.Typer(
    name="oprag",
    help="Order-preserving RAG: the passages that answer a question, in the order of the document.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@typed_options("options", ContextOptions, defaults=OP_RAG_16K)
@typed_options("indexed", Indexing)
def context(
    options: TypedOptions,
    indexed: TypedOptions,
    files: Annotated[list[str], typer.Argument(help=FILES)],
    question: Annotated[str, typer.Argument(help="The question.")],
    profile: ProfilePath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known as JSON.")] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Print the context alone, as a model would read it; cleaned of control characters on a terminal.",
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print as well what was kept, what was dropped and why.")
    ] = False,
) -> None:
    """Print the passages of FILES that fit a QUESTION, in the order of the document."""
    with clear_errors():
        check_question(question)
        context_options = context_options_of(options, profile)
        indexing = indexed.value()
        result = context_of(question, read_sources(files, indexing), context_options, indexing)
        if as_json:
            echo_json({"question": question, **result.to_dict()})
        elif raw:
            # A terminal would obey escape sequences; a program gets the text as it is, which `color` asks for.
            typer.echo(safe(result.text) if sys.stdout.isatty() else result.text, color=True)
        else:
            show_context(result)
        if explain and not as_json:
            typer.echo(f"\n{result.explain()}")


@app.command("map")
@typed_options("options", ContextOptions, defaults=OP_RAG_16K)
@typed_options("indexed", Indexing)
def map_(
    options: TypedOptions,
    indexed: TypedOptions,
    files: Annotated[list[str], typer.Argument(help=FILES)],
    question: Annotated[str, typer.Argument(help="The question.")],
    profile: ProfilePath = None,
    svg: Annotated[str | None, typer.Option(help="Write the map to this file as well, as an SVG picture.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known as JSON.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print as well what was kept, what was dropped and why.")
    ] = False,
) -> None:
    """Show where in FILES the passages lie that fit a QUESTION, and where those that were dropped.

    Keeps what `oprag context` keeps, but retrieves twice as many chunks: the second half, dropped by max_candidates,
    is what came close.
    """
    with clear_errors():
        check_question(question)
        if svg is not None:
            check_target(svg, *files, *([] if profile is None else [profile]), kind=MAP)
        context_options, indexing = context_options_of(options, profile), indexed.value()
        sources = read_sources(files, indexing)
        result = context_of(question, sources, context_options, indexing, beyond=True)
        lengths = lengths_of(sources)
        chart = map_of(result, lengths)
        if svg is not None:
            write_svg(svg, chart, question)
        if as_json:
            echo_json({"question": question, **result.to_dict(), "lengths": lengths})
            return
        show_map(chart)
        if explain:
            typer.echo(f"\n{result.explain()}")


@app.command()
@typed_options("options", ContextOptions, defaults={"k": None, "token_budget": None})
@typed_options("indexed", Indexing)
@typed_options("how", MethodOptions, without=("prompts", "condense", "empty_answer"))
def ask(
    options: TypedOptions,
    indexed: TypedOptions,
    how: TypedOptions,
    files: Annotated[list[str], typer.Argument(help=FILES)],
    question: Annotated[str, typer.Argument(help="The question.")],
    profile: ProfilePath = None,
    model: Annotated[
        str,
        typer.Option(
            help="PROVIDER:MODEL, as LangChain's init_chat_model takes it, such as openai:gpt-5-mini or "
            f"ollama:llama3.2; {LOCAL} is a very small model that comes in a package. With it k is "
            f"{LOCAL_DEFAULTS['k']} and token_budget {LOCAL_DEFAULTS['token_budget']:,} by default, else "
            f"{OP_RAG_16K['k']} and {OP_RAG_16K['token_budget']:,}."
        ),
    ] = LOCAL,
    base_url: Annotated[str | None, typer.Option(help="The address of a server with the provider's protocol.")] = None,
    temperature: Annotated[float | None, typer.Option(help="The temperature of the model.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="The most tokens of a reply of the model.")] = None,
    compare: Annotated[
        str | None, typer.Option(help="Several methods with commas between them; prints a table of their answers.")
    ] = None,
    choice: Annotated[
        list[str] | None, typer.Option(help="An answer to choose from; give it once for each of them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known as JSON.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print as well how the answer came to be.")] = False,
) -> None:
    """Answer a QUESTION about FILES, from their passages in the order of the document."""
    with clear_errors():
        check_question(question)
        methods = [] if compare is None else [name.strip() for name in compare.split(",")]
        chat_model = Model(model, base_url, temperature, max_tokens)
        settings = profile_for_answers(profile, options, how)
        context_options = options.value(settings.context_keywords(dict.fromkeys(options.given)), **chat_model.defaults)
        indexing = indexed.value()
        sources = read_sources(files, indexing)
        chain = make_chain(
            chat_model, sources, context_options, how.keywords(settings.method), indexing=indexing, methods=methods
        )
        if compare is not None:
            comparison = chain.compare(question, methods, choices=choice or ())
            if as_json:
                echo_json([answer.to_dict() for answer in comparison])
                return
            show_comparison(comparison)
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


app.command()(compare)
app.command()(report)
app.command()(sweep)


@app.command()
def demo(question: Annotated[str, typer.Argument(help="The question.")] = QUESTION) -> None:
    """Ask the Python language reference, which comes with Python, and compare source order with rank order."""
    with clear_errors():
        check_question(question)
        show_demo(question)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"oprag {__version__}")
        raise typer.Exit
