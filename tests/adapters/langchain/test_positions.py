"""The order through LangChain's own splitters, whose offsets are missing, -1 or restart: by the text, and by pages."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import (
    CharacterTextSplitter,
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
    TextSplitter,
)

from oprag import Context, PositionKind
from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import giving, prose
from tests.adapters.scripted import QUESTION
from tests.helpers import count_words

TEXT = prose(3000, seed=1)
MARKDOWN = "\n\n".join(f"{'#' * (1 + number % 2)} Title {number}\n\n{prose(150, seed=number)}" for number in range(8))


def split(splitter: TextSplitter, text: str = TEXT, **metadata: Any) -> list[Document]:
    return splitter.split_documents([Document(text, metadata={"source": "book.txt", **metadata})])


def recursive(*, size: int = 500, overlap: int = 50, start: bool = True, **options: Any) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, add_start_index=start, **options)
    return split(splitter)


def in_tokens(overlap: int) -> list[Document]:
    """LangChain takes the overlap in tokens from an offset in characters, and then does not find the text."""
    return recursive(size=80, overlap=overlap, length_function=count_words)


def by_expression() -> list[Document]:
    """LangChain joins the pieces with the expression itself, so that no chunk is in the text."""
    return split(
        CharacterTextSplitter(
            separator=r"\s+", is_separator_regex=True, chunk_size=300, chunk_overlap=30, add_start_index=True
        )
    )


def by_section() -> list[Document]:
    """The offsets restart in each section, and the headers do not say which section comes first."""
    sections = MarkdownHeaderTextSplitter([("#", "part"), ("##", "chapter")]).split_text(MARKDOWN)
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=30, add_start_index=True)
    chunks = splitter.split_documents(sections)
    return [chunk.model_copy(update={"metadata": {**chunk.metadata, "source": "book.txt"}}) for chunk in chunks]


def by_page(**names: Callable[[int], Any]) -> list[Document]:
    """A PDF reader's document a page; the offsets restart on each page."""
    pages = [
        Document(
            TEXT[start : start + 1500],
            metadata={"source": "book.txt", **{key: name(page) for key, name in names.items()}},
        )
        for page, start in enumerate(range(0, len(TEXT), 1500))
    ]
    assert len(pages) > 10
    return RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=40, add_start_index=True).split_documents(pages)


def shuffled(chunks: list[Document]) -> list[Document]:
    """In the order of some ranking."""
    ranked = random.Random(7).sample(chunks, len(chunks))
    assert ranked != chunks
    return ranked


def ordered(chunks: list[Document], **options: Any) -> Context:
    return OrderPreservingRetriever(retriever=giving(shuffled(chunks)), **options).get_context(QUESTION)


def kept(context: Context) -> list[Document]:
    return [chunk.origin for chunk in context.kept]


SPLITS: dict[str, Callable[[], list[Document]]] = {
    "recursive": recursive,
    "recursive without start_index": lambda: recursive(start=False),
    "recursive without overlap": lambda: recursive(overlap=0),
    "tokens, overlap 20": lambda: in_tokens(20),
    "tokens, overlap 40": lambda: in_tokens(40),
    "regular expression": by_expression,
    "regular expression, kept": lambda: split(
        CharacterTextSplitter(separator=r"\s+", is_separator_regex=True, keep_separator=True, chunk_size=300)
    ),
    "markdown sections": by_section,
    "pages": lambda: by_page(page=int),
}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (make, MARKDOWN if name == "markdown sections" else TEXT)
        for name, make in SPLITS.items()
        if "expression" not in name
    ],
    ids=[name for name in SPLITS if "expression" not in name],
)
def test_located_chunks_are_in_order_whatever_split_them(make: Callable[[], list[Document]], text: str):
    chunks = make()
    context = ordered(chunks, read_source={"book.txt": text})
    assert kept(context) == chunks
    assert [report.missing for report in context.sources] == [0]


PAGES: dict[str, dict[str, Callable[[int], Any]]] = {
    "from 0": {"page": int},
    "from 1": {"page_number": lambda page: page + 1},
    "strings": {"page": str},
    "floats": {"page": float},
    "labels": {"page_label": lambda page: ["i", "ii", "iii", "iv", "v"][page] if page < 5 else str(page - 4)},
    "number and label": {"page": int, "page_label": lambda page: f"A-{page + 1}"},
}


@pytest.mark.filterwarnings("ignore:page labels alone tell the order")
@pytest.mark.parametrize("names", PAGES.values(), ids=PAGES)
def test_page_and_offset_order_chunks_that_were_not_stamped(names: dict[str, Callable[[int], Any]]):
    chunks = by_page(**names)
    context = ordered(chunks)
    assert kept(context) == chunks
    assert [report.kind for report in context.sources] == [PositionKind.PAGE_OFFSET]
