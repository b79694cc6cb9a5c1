"""The command `oprag ask`: prints the passages of files for a question, or answers it from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from oprag._internal.files.pdf import is_pdf, pdf_pages
from oprag._internal.files.reading import file_text
from oprag._internal.masking import shown
from oprag._internal.text_table import one_line, safe
from oprag.chunk import Passage, Span, counted
from oprag.cli.console import WorkProgress, console, echo_json, print_status
from oprag.cli.options import AS_JSON, MODEL, OUTPUT, Indexing, declare, typed_options
from oprag.compare.data.data_set import whole_text
from oprag.compare.providers.chat_models import load_chat_model
from oprag.context import Context
from oprag.embedding.embedder import DualEncoder, Embedder
from oprag.embedding.static import local_embedder
from oprag.errors import InputFileError, OptionError
from oprag.index.document_index import DocumentIndex
from oprag.index.tokenizers import LOCAL
from oprag.methods.answer import Answer
from oprag.methods.options import MethodOptions
from oprag.methods.registry import check_needs
from oprag.options import OP_RAG_16K, ContextOptions, check_question

if TYPE_CHECKING:
    from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever

__all__ = ["ask", "content_of", "index_sources", "place_of", "print_answer", "read_sources", "retriever_of"]

_STDIN = "<stdin>"
_NAME_WIDTH = 200  # characters of a source name

# Small, because the packaged model reads only a few hundred tokens per second on two cores.
_LOCAL_DEFAULTS = {"k": 8, "token_budget": 1_000}


@typed_options(options=ContextOptions, indexed=Indexing, how=MethodOptions)
def ask(
    *,
    options: dict[str, Any],
    indexed: dict[str, Any],
    how: dict[str, Any],
    files: list[str] = typer.Argument(help="Text, Markdown (both UTF-8) or PDF files; - reads standard input."),
    question: str = typer.Argument(help="The question."),
    profile: str | None = declare("A profile, such as oprag.toml; command-line options take precedence over it."),
    model: str | None = declare(
        "The model that answers: PROVIDER:MODEL as in LangChain's init_chat_model, such as openai:gpt-5-mini, or "
        f"{LOCAL} (a very small packaged model). Without a model, the passages are printed. Default limits: k "
        f"{OP_RAG_16K['k']} and token_budget {OP_RAG_16K['token_budget']:,}; with {LOCAL}, {_LOCAL_DEFAULTS['k']} and "
        f"{_LOCAL_DEFAULTS['token_budget']:,}.",
        panel=MODEL,
    ),
    base_url: str | None = declare("Base URL of the server, instead of the provider's.", panel=MODEL),
    temperature: float | None = declare("The temperature of the model.", panel=MODEL),
    max_tokens: int | None = declare("Maximum number of tokens in a reply.", min=1, panel=MODEL),
    as_json: bool = AS_JSON,
    explain: bool = declare(
        "Also explain the context: which chunks were kept, which were dropped and why.",
        "--explain",
        default=False,
        panel=OUTPUT,
    ),
) -> None:
    """Print the passages of FILES for a QUESTION in document order, or with --model, answer it from them.

    The options of the method and of the model require --model.
    """
    from oprag.methods.profile import Profile, options_for, read_profile

    check_question(question)
    settings = Profile() if profile is None else read_profile(profile)
    defaults = _LOCAL_DEFAULTS if model == LOCAL else OP_RAG_16K
    context_options = ContextOptions(**{**defaults, **settings.context, **options})
    indexing = Indexing(**indexed)
    model_settings = {"base_url": base_url, "temperature": temperature, "max_tokens": max_tokens}
    model_settings = {name: value for name, value in model_settings.items() if value is not None}
    if model is None:
        if given := [*sorted(how), *model_settings]:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise OptionError(f"without --model only the passages are printed; set --model or remove {names}", given)
        # As the profile's method would read it.
        context_options = MethodOptions(**settings.method).numbered(context_options)
        retriever = retriever_of(index_sources(read_sources(files), indexing), context_options, indexing)
        context = retriever.get_context(question, context_options=replace(context_options, k=retriever.k))
        _show_context(question, context, as_json=as_json, explain=explain)
        return
    from oprag.langchain import OrderPreservingChain

    options_for(OrderPreservingChain, settings, {**options, **how})  # rejects options that would be ignored
    method_options = MethodOptions(**{**settings.method, **how})
    sources = read_sources(files)
    check_needs(method_options, embeddings=True, read_source=True)  # before a model is loaded and files are embedded
    llm = load_chat_model(model, model_settings, feature="oprag ask")
    index = index_sources(sources, indexing)
    chain: OrderPreservingChain = OrderPreservingChain(
        llm=llm,
        retriever=retriever_of(index, context_options, indexing),
        embeddings=index.embedder or _embeddings(indexing.embeddings),
        read_source={name: whole_text(text) for name, text in sources.items()},
        **vars(method_options),
    )
    if as_json:
        echo_json(chain.answer(question).to_dict())
    else:
        answer = print_answer(chain, question)
        if explain:
            typer.echo(f"\n{answer.explain()}")


def read_sources(files: Sequence[str]) -> dict[str, str | list[str]]:
    """Read the text (or the pages) of each file; line endings are preserved, so that offsets are those of the file."""
    return {_STDIN if name == "-" else name: content_of(name) for name in dict.fromkeys(files)}


def content_of(name: str) -> str | list[str]:
    """Read the text of a file, or its pages."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InputFileError(f"cannot read {name}: {error.strerror}", name) from error
    return pdf_pages(name, data, "cli") if is_pdf(name, data) else file_text(name, data)


def index_sources(
    sources: Mapping[str, str | list[str]],
    indexing: Indexing,
    on_progress: Callable[[int, int], None] | None = None,
) -> DocumentIndex:
    """Build an index over these texts (or pages); progress is shown in the terminal by default."""
    with WorkProgress("chunks embedded") as progress:
        return DocumentIndex.from_texts(
            sources,
            None if indexing.search == "bm25" else _embedder(indexing.embeddings),
            local_embedder().tokenizer,
            splitter=indexing.splitter,
            chunk_size=indexing.chunk_size,
            chunk_overlap=indexing.chunk_overlap,
            on_progress=on_progress or progress.update,
        )


@cache
def _embedder(name: str) -> Embedder:
    # Loads pydantic, which the help of the commands does not need.
    from oprag.compare.providers.specs import load_embedder

    return load_embedder(name, {})


@cache
def _embeddings(name: str) -> DualEncoder:
    """An embedder that is loaded when it first embeds something, because most methods embed nothing."""
    return DualEncoder(
        name,
        lambda texts: _embedder(name).embed_questions(texts),
        lambda texts: _embedder(name).embed_documents(texts),
    )


def retriever_of(index: DocumentIndex, options: ContextOptions, indexing: Indexing) -> OrderPreservingRetriever:
    """Return a retriever that searches the index and makes contexts with these options."""
    from oprag.langchain import DocumentIndexRetriever, OrderPreservingRetriever

    candidates = min(options.candidates or len(index), len(index))
    # A k that changes nothing would only cause a warning that the search found fewer chunks.
    k = None if (options.k or 0) >= candidates else options.k
    return OrderPreservingRetriever(
        retriever=DocumentIndexRetriever(index=index, k=max(candidates, 1), search=indexing.search),
        # An index for bm25 has no embedder, but thresholds need cosines.
        embeddings=_embeddings(indexing.embeddings) if index.embedder is None else None,
        **{**vars(options), "k": k, "stitch": False},
    )


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
    kept = f"{counted(len(context.kept), 'chunk')} in {counted(len(context.passages), 'passage')}"
    tokens = f"{context.tokens:,} tokens{approximate}"
    order = f"order {context.options.order}, {len(context.dropped)} dropped"
    out.print(f"── {kept}, {tokens}, {order}", style="bold")
    if explain:
        typer.echo(f"\n{context.explain()}")


def place_of(passage: Passage) -> str:
    """Return the source, character spans and ranks of a passage on one line."""
    where = one_line(safe(shown(passage.source or "(unknown source)", _NAME_WIDTH)))
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


def print_answer(chain: OrderPreservingChain, question: str) -> Answer:
    """Print the answer while the model generates it, then its citations, calls, tokens and time."""
    out = console()
    answer: Any = None  # the last piece
    try:
        for answer in chain.stream_answer(question):
            out.print("" if isinstance(answer, Answer) else safe(answer), end="")
    finally:
        if answer is not None:
            out.print()
    for one in answer.citations:
        name = one_line(safe(shown(one.source or "(unknown source)", _NAME_WIDTH)))
        span = "" if one.span is None else f", {_characters(one.span, one.span)}"
        out.print(f"[{one.number}] {name}{span}")
    usage = answer.usage
    route = f", route {answer.route}" if answer.route else ""
    calls = f"{answer.method}{route}: {counted(len(answer.calls), 'call')}"
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{' (estimated)' if usage.estimated else ''}"
    print_status(f"── {calls}, {tokens}, {answer.seconds:.1f} s", "bold")
    for note in answer.notes:
        print_status(f"Note: {note}", "yellow")
    return answer  # type: ignore[no-any-return]
