"""LangChain's loaders, splitters, stores and retrievers, and metadata as other tools write them."""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import langchain_text_splitters as splitters
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.utils import get_tokenizer

from benchmarks.order_settings_documents import Material, pages
from benchmarks.order_settings_histories import Filling, Handed, handed
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever, stamp_positions
from tests.integration.stores.langchain_stores import DIMENSION, KINDS
from tests.integration.stores.place import Place

__all__ = ["EMBEDDINGS", "LangChainFilling"]

EMBEDDINGS = DeterministicFakeEmbedding(size=DIMENSION)
"""Random vectors: the rank of a chunk says nothing about its place."""

_LAYOUTS: dict[str, str] = {
    name: template
    for line in Path(__file__).with_name("order_settings_layouts.txt").read_text(encoding="utf-8").splitlines()
    for name, _, template in [line.partition("|")]
}
"""The metadata that a tool writes for a chunk of a PDF, as JSON with places for the values."""
_STORES = {kind.name: kind.make for kind in KINDS}
_HEADERS = [("#", "Header 1"), ("##", "Header 2"), ("###", "Header 3")]
_TAGS = [("h1", "Header 1"), ("h2", "Header 2"), ("h3", "Header 3")]


def _sized(kind: Any, size: int, overlap: int, **fixed: Any) -> Callable[..., Any]:
    return lambda scale, **options: kind(
        chunk_size=int(scale * size), chunk_overlap=int(scale * overlap), **fixed, **options
    )


def _words(text: str) -> int:
    return len(text.split())


def _tokens(text: str) -> int:
    return len(get_tokenizer()(text))


_SPLITTERS: Mapping[str, Callable[..., Any]] = {
    "recursive": _sized(splitters.RecursiveCharacterTextSplitter, 800, 100),
    "no overlap": _sized(splitters.RecursiveCharacterTextSplitter, 800, 0),
    "by words": _sized(splitters.RecursiveCharacterTextSplitter, 120, 40, length_function=_words),
    "by tokens": _sized(splitters.RecursiveCharacterTextSplitter, 200, 40, length_function=_tokens),
    "tokens": _sized(splitters.TokenTextSplitter, 200, 40, encoding_name="cl100k_base"),
    "characters": _sized(splitters.CharacterTextSplitter, 1200, 100),
    "Markdown headers": lambda _scale: splitters.MarkdownHeaderTextSplitter(_HEADERS),
    "HTML headers": lambda _scale: splitters.HTMLHeaderTextSplitter(_TAGS),
}


def _split(steps: str, document: Document, scale: float) -> list[Document]:
    """Apply splitters, such as "Markdown headers > recursive, start_index"; "-" is none."""
    _tokens("")  # the tables are in LlamaIndex's package; tiktoken would fetch them
    chunks = [document.model_copy()]
    for step in steps.split(" > ") if steps != "-" else ():
        name, _, start = step.partition(", ")
        splitter = _SPLITTERS[name](scale, **({"add_start_index": True} if start else {}))
        if hasattr(splitter, "split_documents"):
            chunks = splitter.split_documents(chunks)
        else:
            # These take a text; users add the metadata of the file.
            texts = [(part, chunk.metadata) for chunk in chunks for part in splitter.split_text(chunk.page_content)]
            chunks = [Document(part.page_content, metadata=metadata | part.metadata) for part, metadata in texts]
    return chunks


def _load(name: str, material: Material) -> list[Document]:
    from langchain_community import document_loaders as loaders

    file, _, variant = name.partition(" (")
    path = material.path(file)
    if path.suffix == ".pdf":
        loader: Any = loaders.PyPDFLoader(str(path), mode="single" if "one text" in variant else "page")
    elif "BSHTMLLoader" in variant:
        loader = loaders.BSHTMLLoader(str(path), bs_kwargs={"features": "html.parser"})
    else:
        kinds: dict[str, Any] = {".csv": loaders.CSVLoader, ".docx": loaders.Docx2txtLoader}
        loader = kinds.get(path.suffix, loaders.TextLoader)(str(path))
    documents: list[Document] = loader.load()
    if path.suffix == ".jsonl":
        # As JSONLoader does, which needs jq.
        rows = enumerate(documents[0].page_content.splitlines(), 1)
        documents = [Document(row, metadata={"source": str(path), "seq_num": number}) for number, row in rows]
    if "labels only" in variant:
        for document in documents:
            document.metadata = {"source": str(path), "page_label": document.metadata["page_label"]}
    return [document for document in documents if document.page_content.strip()]


def _two_files() -> dict[str, list[Document]]:
    """Two files as pages, with metadata for `_laid_out`."""
    files: dict[str, list[Document]] = {}
    for name, topic in (("data model.pdf", "specialnames"), ("statements.pdf", "compound")):
        before = 0
        files[name] = []
        for number, text in enumerate(pages(topics[topic], 45), 1):
            files[name].append(Document(text, metadata={"file": name, "page": number, "before": before, "text": text}))
            before += len(text) + 1
    return files


def _laid_out(template: str, chunks: Sequence[Document]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}
    for number, chunk in enumerate(chunks):
        page, offset = chunk.metadata, chunk.metadata["start_index"]
        numbers[page["page"]] = numbers.get(page["page"], -1) + 1
        top = page["text"].count("\n", 0, offset) + 1
        values = {"top": top, "bottom": top + chunk.page_content.count("\n"), "offset": offset, "number": number}
        values |= {"in_file": page["before"] + offset, "in_page": numbers[page["page"]]}
        values |= {"id": _id(chunk.page_content), "file_id": _id(page["file"]), "page_id": _id(page["text"])}
        written.append(json.loads(template % {**page, **values}))
    return written


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class LangChainFilling(Filling):
    """Documents in a store, or in a list."""

    def __init__(self, row: Sequence[str], material: Material, place: Place) -> None:
        layout, names, splitter, self._kind, self._way, _ = row
        self._layout = _LAYOUTS.get(layout)
        self._splitter = splitter if self._layout is None else "recursive, start_index"
        self._place, self._added = place, list[Document]()
        self._store: Any = None
        files = names.split(" + ")
        super().__init__(
            {file.partition(" (")[0]: _load(file, material) for file in files} if not self._layout else _two_files()
        )

    def split(self, documents: Sequence[Document], scale: float) -> list[tuple[int, Document]]:
        made = [(number, chunk) for number, one in enumerate(documents) for chunk in _split(self._splitter, one, scale)]
        chunks = [chunk for _, chunk in made]
        for chunk, metadata in zip(chunks, _laid_out(self._layout, chunks) if self._layout else (), strict=False):
            chunk.metadata = metadata
        for chunk in chunks:
            chunk.id = str(uuid.uuid4())
        return made

    def add(self, chunks: Sequence[Document]) -> None:
        chunks = list(chunks)
        self._added += chunks
        if self._store is not None:
            self._store.add_documents(chunks, ids=[chunk.id for chunk in chunks])
        elif self._kind == "parents":
            from langchain_classic.retrievers import ParentDocumentRetriever
            from langchain_core.stores import InMemoryStore

            children = splitters.RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=0)
            store = InMemoryVectorStore(EMBEDDINGS)
            self._store = ParentDocumentRetriever(vectorstore=store, docstore=InMemoryStore(), child_splitter=children)
            self._store.add_documents(chunks, ids=[chunk.id for chunk in chunks])
        elif self._kind != "-":
            self._store = _STORES[self._kind](chunks, EMBEDDINGS, self._place)

    def delete(self, chunks: Sequence[Document]) -> None:
        self._store.delete([str(chunk.id) for chunk in chunks])

    def stamp(self, chunks: Sequence[Document]) -> list[Document]:
        return stamp_positions(chunks)

    def key(self, chunk: Any) -> str:
        if self._kind == "lancedb_l2":
            return f"{chunk.metadata.get('page')} {self.text(chunk)}"  # it returns no ids
        return str(chunk.metadata.get("_id") or chunk.id)  # the former in Qdrant

    def text(self, one: Any) -> str:
        return str(one.page_content if isinstance(one, Document) else one.text)

    def changed(self, document: Document, text: str) -> Document:
        return document.model_copy(update={"page_content": text})

    def same(self, chunk: Document) -> str:
        return f"{chunk.page_content} {chunk.metadata}"

    def ask(self, question: str, k: int) -> Handed:
        """Search through oprag."""
        way, *options = self._way.split(", ")
        given: dict[str, Any] = dict(option.split("=") for option in options)
        if way == "compressor":
            found = OrderPreservingCompressor().compress_documents(self._searched(k).invoke(question), question)
            return Handed([self.key(document) for document in found])
        if way == "read_source=":
            documents = [document for (document,) in self.sources.values()]
            given["read_source"] = {document.metadata["source"]: document.page_content for document in documents}
        given |= {"vectorstore": self._store, "k": k} if way.endswith("=") else {"retriever": self._searched(k)}
        return handed(OrderPreservingRetriever(**given).get_context(question), self.key)

    def _searched(self, k: int) -> Any:
        if self._store is None:
            return RunnableLambda(
                lambda question: random.Random(question).sample(self._added, min(k, len(self._added)))
            )
        if isinstance(self._store, BaseRetriever):
            return self._store.model_copy(update={"search_kwargs": {"k": k}})
        return self._store.as_retriever(search_kwargs={"k": k})
