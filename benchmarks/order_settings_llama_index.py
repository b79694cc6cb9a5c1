"""LlamaIndex's readers, node parsers, stores and engines in `benchmarks.orders_of_documents`."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from llama_index.core import SimpleDirectoryReader, StorageContext, SummaryIndex, node_parser
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import BaseNode, Document, MetadataMode

from benchmarks.order_settings_documents import Material
from benchmarks.order_settings_histories import Filling, Handed, handed
from benchmarks.order_settings_langchain import EMBEDDINGS
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    StampPositions,
)
from tests.integration.stores.llama_index_stores import KINDS
from tests.integration.stores.place import Place

__all__ = ["LlamaIndexFilling"]

_STORES = {kind.name: kind.make for kind in KINDS}
_PARSERS: Mapping[str, Callable[[float], Any]] = {
    "SentenceSplitter": lambda scale: node_parser.SentenceSplitter(chunk_size=int(1024 * scale)),
    "SentenceSplitter(256)": lambda scale: node_parser.SentenceSplitter(chunk_size=int(256 * scale), chunk_overlap=20),
    "TokenTextSplitter": lambda scale: node_parser.TokenTextSplitter(chunk_size=int(256 * scale)),
    "SentenceWindowNodeParser": lambda _scale: node_parser.SentenceWindowNodeParser(),
    "HierarchicalNodeParser": lambda _scale: node_parser.HierarchicalNodeParser.from_defaults(),
    "MarkdownNodeParser": lambda _scale: node_parser.MarkdownNodeParser(),
    "HTMLNodeParser": lambda _scale: node_parser.HTMLNodeParser(),
    "JSONNodeParser": lambda _scale: node_parser.JSONNodeParser(),
}


class RandomEmbedding(BaseEmbedding):
    """Random vectors."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return EMBEDDINGS.embed_query(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return EMBEDDINGS.embed_query(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return EMBEDDINGS.embed_query(query)


def _load(name: str, material: Material) -> list[Document]:
    from llama_index.readers import file as readers

    file, _, variant = name.removesuffix(")").partition(" (")
    path = material.path(file)
    if variant == "JSONReader":
        from llama_index.readers.json import JSONReader

        documents = JSONReader(is_jsonl=True).load_data(str(path))
    elif variant.endswith("CSVReader"):
        documents = getattr(readers, variant)(concat_rows=False).load_data(path)
    elif variant.endswith("Reader"):
        documents = getattr(readers, variant)().load_data(path)
    else:
        extractor: Any = {".pdf": readers.PDFReader(return_full_document=True)} if variant == "one text" else None
        documents = SimpleDirectoryReader(input_files=[path], file_extractor=extractor).load_data()
    return [document for document in documents if document.text.strip()]


class LlamaIndexFilling(Filling):
    """Nodes in an index."""

    def __init__(self, row: Sequence[str], material: Material, place: Place) -> None:
        _, names, parser, self._kind, self._way, _ = row
        super().__init__({file.partition(" (")[0]: _load(file, material) for file in names.split(" + ")})
        self._parser, self._place = _PARSERS[parser], place
        self._index: Any = None

    def split(self, documents: Sequence[Document], scale: float) -> list[tuple[int, BaseNode]]:
        numbers = {document.node_id: number for number, document in enumerate(documents)}
        nodes = self._parser(scale).get_nodes_from_documents(list(documents))
        by_id = {node.node_id: node for node in nodes}
        return [(numbers[str(_ancestors(node, by_id)[-1].ref_doc_id)], node) for node in nodes]

    def record(
        self, source: str, documents: Sequence[Document], made: Iterable[tuple[int, BaseNode]], version: str = ""
    ) -> None:
        made = list(made)
        by_id = {node.node_id: node for _, node in made}
        # The levels of a hierarchy are made one after another.
        levels: dict[int, list[tuple[int, BaseNode]]] = defaultdict(list)
        for number, node in made:
            levels[len(_ancestors(node, by_id))].append((number, node))
        for nodes in levels.values():
            super().record(source, documents, nodes, version)

    def add(self, chunks: Sequence[BaseNode]) -> None:
        leaves: list[Any] = [node for node in chunks if not node.child_nodes]
        if self._index is not None:
            self._index.insert_nodes(leaves)
        elif self._kind == "summary":
            self._index = SummaryIndex(leaves)
        else:
            self._index = _STORES[self._kind](leaves, RandomEmbedding(), self._place)
        if len(leaves) < len(chunks):
            self._index.docstore.add_documents(chunks)

    def delete(self, chunks: Sequence[BaseNode]) -> None:
        self._index.delete_nodes([node.node_id for node in chunks], delete_from_docstore=True)

    def stamp(self, chunks: Sequence[BaseNode]) -> list[BaseNode]:
        return list(StampPositions()(chunks))

    def key(self, chunk: Any) -> str:
        return str(chunk.node_id if isinstance(chunk, BaseNode) else chunk.id)

    def text(self, one: Any) -> str:
        return str(one.get_content(MetadataMode.NONE))

    def changed(self, document: Document, text: str) -> Document:
        return Document(text=text, metadata=document.metadata, id_=str(uuid.uuid4()))

    def same(self, chunk: BaseNode) -> str:
        return self.text(chunk)

    def ask(self, question: str, k: int) -> Handed:
        """Search through oprag."""
        way, retriever = self._way, self._searched(k)
        if way.startswith("retriever"):
            return handed(OrderPreservingRetriever(retriever=retriever).get_context(question), self.key)
        if way.startswith("query engine"):
            engine = OrderPreservingQueryEngine(retriever=retriever, llm=MockLLM(max_tokens=1))
            response: Any = engine.query(question)
            return Handed([self.key(scored.node) for scored in response.source_nodes])
        nodes = retriever.retrieve(question)
        if "windows" in way:
            nodes = MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes(nodes)
        postprocessor = OrderPreservingPostprocessor(index=self._index if "index=" in way else None)
        return handed(postprocessor.get_context(nodes, question), self.key)

    def _searched(self, k: int) -> Any:
        if self._kind == "summary":
            return self._index.as_retriever("embedding", similarity_top_k=k, embed_model=RandomEmbedding())
        retriever = self._index.as_retriever(similarity_top_k=k)
        if "AutoMerging" in self._way:
            return AutoMergingRetriever(retriever, StorageContext.from_defaults(docstore=self._index.docstore))
        return retriever


def _ancestors(node: BaseNode, by_id: Mapping[str, BaseNode]) -> list[BaseNode]:
    """The node, its parent, and so on."""
    found = [node]
    while (parent := found[-1].parent_node) is not None:
        found.append(by_id[parent.node_id])
    return found
