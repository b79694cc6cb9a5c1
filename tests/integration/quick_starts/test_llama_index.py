"""LlamaIndex's quick starts as its documentation has them, then with the postprocessor as the only other line."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pypdf
import pytest
from llama_index.core import (
    Document,
    Settings,
    SimpleDirectoryReader,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import ChatMessage, CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.node_parser import HierarchicalNodeParser, MarkdownNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import QueryEngineTool
from pydantic import Field

from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever
from tests.integration.quick_starts.checks import BY_STORE, check_prompt, check_swap, in_order, warns_only
from tests.integration.quick_starts.documents import text_of
from tests.integration.stores.known import NodeEmbeddings

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

QUESTIONS = [
    "What happens when an exception is raised inside a with statement?",
    "How are attributes of an object looked up?",
    "Who decides which value is used by default, and why?",
]


class Recorder(CustomLLM):
    """Answers, and keeps what it reads."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=100_000, model_name="recorder")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text="Ada Brand.")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        self.prompts.append(prompt)
        yield CompletionResponse(text="Ada Brand.", delta="Ada Brand.")


class PDFReader(BaseReader):
    """What a page becomes by the reader of `llama-index-readers-file`, which brings more than these tests need."""

    def load_data(self, file: Path, extra_info: dict[str, Any] | None = None, **_: Any) -> list[Document]:
        pages = pypdf.PdfReader(file)
        return [
            Document(text=page.extract_text(), metadata={"page_label": label, **(extra_info or {})})
            for page, label in zip(pages.pages, pages.page_labels, strict=True)
        ]


@pytest.fixture(autouse=True)
def model(monkeypatch, embeddings):
    """The settings that the tutorials set, with the model that query engines ask."""
    model = Recorder()
    embed = NodeEmbeddings(embeddings)
    kept = {"_llm": model, "_embed_model": embed, "_prompt_helper": None, "_transformations": None}
    for name, value in kept.items():
        monkeypatch.setattr(Settings, name, value)
    return model


@pytest.fixture
def conversations():
    """LlamaIndex leaves the databases of its conversations to the garbage collector."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def load_data(folder: Path, *endings: str) -> list[Document]:
    return SimpleDirectoryReader(
        str(folder), required_exts=[f".{ending}" for ending in endings], file_extractor={".pdf": PDFReader()}
    ).load_data()


def found(nodes: Sequence[NodeWithScore]) -> list[tuple[str, str]]:
    return [(scored.metadata["file_name"], scored.text) for scored in nodes]


def texts(data: Path) -> dict[str, str]:
    """The texts of the files; web pages are read as they are."""
    return {
        path.name: path.read_text(encoding="utf-8") if path.suffix == ".html" else text_of(path)
        for path in data.iterdir()
    }


def ask(engine: Any, model: Recorder) -> list[list[tuple[str, str]]]:
    """The nodes that an engine answers from, which the model reads in their sequence."""
    asked = []
    for question in QUESTIONS:
        model.prompts.clear()
        response = engine.query(question)
        assert str(response) == "Ada Brand."
        asked.append(found(response.source_nodes))
        check_prompt("\n".join(model.prompts), asked[-1])
    return asked


def check_engines(index: Any, model: Recorder, data: Path, *promised: str, **options: Any) -> None:
    """The query engine of an index, as it is and with our postprocessor."""
    with warns_only(*promised):
        query_engine = index.as_query_engine(similarity_top_k=8)
        before = ask(query_engine, model)
        order = OrderPreservingPostprocessor(index=index, **options)
        query_engine = index.as_query_engine(similarity_top_k=8, node_postprocessors=[order])
        after = ask(query_engine, model)
    check_swap(before, after, texts(data))


# The starter tutorial, over files of each kind.

# Tables and transcripts are short for the default.
SMALL = SentenceSplitter(chunk_size=128, chunk_overlap=20)


@pytest.mark.parametrize(
    ("ending", "splitter"),
    [("txt", None), ("pdf", None), ("md", None), ("html", None), ("csv", SMALL), ("srt", SMALL), ("txt", SMALL)],
)
def test_starter(ending, splitter, model, data):
    documents = load_data(data, ending)
    index = VectorStoreIndex.from_documents(documents, transformations=splitter and [splitter])
    check_engines(index, model, data)


def test_a_folder_of_everything(model, data):
    documents = load_data(data, "txt", "pdf", "md", "html", "srt")
    index = VectorStoreIndex.from_documents(documents)
    with warns_only():
        order = OrderPreservingPostprocessor(index=index)
        nodes = index.as_query_engine(similarity_top_k=60, node_postprocessors=[order]).query(QUESTIONS[0]).source_nodes
    assert len(nodes) == 60
    assert len({file for file, _ in found(nodes)}) > 4
    assert in_order(found(nodes), texts(data))


@pytest.fixture
def index(data):
    """The index of the tutorial, over texts and PDFs."""
    return VectorStoreIndex.from_documents(load_data(data, "txt", "pdf"))


def test_index_that_was_saved(index, model, data, tmp_path):
    index.storage_context.persist(str(tmp_path / "storage"))
    storage_context = StorageContext.from_defaults(persist_dir=str(tmp_path / "storage"))
    check_engines(load_index_from_storage(storage_context), model, data)


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "accumulate"])
def test_response_modes(mode, index, model, data):
    with warns_only():
        order = OrderPreservingPostprocessor(index=index)
        query_engine = index.as_query_engine(response_mode=mode, similarity_top_k=6, node_postprocessors=[order])
        nodes = query_engine.query(QUESTIONS[0]).source_nodes
    assert in_order(found(nodes), texts(data))
    check_prompt("\n".join(model.prompts), found(nodes))


async def test_streamed_and_async(index, model, data):
    with warns_only():
        order = OrderPreservingPostprocessor(index=index)
        streaming = index.as_query_engine(streaming=True, similarity_top_k=6, node_postprocessors=[order])
        response: Any = streaming.query(QUESTIONS[0])
        assert "".join(response.response_gen) == "Ada Brand."
        check_prompt(model.prompts.pop(), found(response.source_nodes))
        query_engine = index.as_query_engine(similarity_top_k=6, node_postprocessors=[order])
        again = await query_engine.aquery(QUESTIONS[0])
    assert found(again.source_nodes) == found(response.source_nodes)
    check_prompt(model.prompts.pop(), found(again.source_nodes))
    assert in_order(found(again.source_nodes), texts(data))


@pytest.mark.usefixtures("conversations")
def test_chat_engine(index, model, data):
    with warns_only():
        order = OrderPreservingPostprocessor(index=index)
        chat_engine = index.as_chat_engine(similarity_top_k=6, node_postprocessors=[order])
        for question in QUESTIONS[:2]:
            response = chat_engine.chat(question)
            assert str(response) == "Ada Brand."
            assert in_order(found(response.source_nodes), texts(data))
            check_prompt(model.prompts[-1], found(response.source_nodes))


# Agents.


def function_calling(tool: str) -> MockFunctionCallingLLM:
    """A model that calls a tool once, then answers with what it returned."""

    def reply(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(role="assistant", content=f"I found: {messages[-1].content}")
        call = ToolCallBlock(tool_call_id="1", tool_name=tool, tool_kwargs=TOOL_ARGUMENTS[tool])
        return ChatMessage(role="assistant", blocks=[call])

    return MockFunctionCallingLLM(response_generator=reply)


TOOL_ARGUMENTS = {"search_documents": {"query": QUESTIONS[0]}, "documents": {"input": QUESTIONS[0]}}


@pytest.mark.usefixtures("conversations")
@pytest.mark.parametrize("tool", TOOL_ARGUMENTS)
async def test_agent(tool, index, model, data):
    from llama_index.core.agent.workflow import FunctionAgent

    query_engine = index.as_query_engine(
        similarity_top_k=6, node_postprocessors=[OrderPreservingPostprocessor(index=index)]
    )

    async def search_documents(query: str) -> str:
        """Answers questions about the documentation."""
        response = await query_engine.aquery(query)
        return str(response)

    documents = QueryEngineTool.from_defaults(query_engine, name="documents", description="The documentation.")
    agent = FunctionAgent(
        tools=[search_documents if tool == "search_documents" else documents],
        llm=function_calling(tool),
        system_prompt="Search the documentation, then answer.",
    )
    with warns_only():
        response = await agent.run(QUESTIONS[0])
        nodes = (await query_engine.aquery(QUESTIONS[0])).source_nodes
    assert str(response) == "I found: Ada Brand."
    assert model.prompts[0] == model.prompts[1]
    assert in_order(found(nodes), texts(data))
    check_prompt(model.prompts[0], found(nodes))


# Stores, pipelines, and engines put together from parts.


def chroma(folder: Path) -> Any:
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore

    database = chromadb.PersistentClient(path=str(folder / "chroma_db"))
    return ChromaVectorStore(chroma_collection=database.get_or_create_collection("quickstart"))


def qdrant(_: Path) -> Any:
    import qdrant_client
    from llama_index.vector_stores.qdrant import QdrantVectorStore

    return QdrantVectorStore(client=qdrant_client.QdrantClient(location=":memory:"), collection_name="test_store")


def faiss_index(_: Path) -> Any:
    import faiss
    from llama_index.vector_stores.faiss import FaissVectorStore

    return FaissVectorStore(faiss_index=faiss.IndexFlatL2(256))


@pytest.mark.parametrize("make", [chroma, faiss_index, qdrant])
def test_other_stores(make, model, data, tmp_path):
    vector_store = make(tmp_path)
    storage_context = StorageContext.from_defaults(vector_store=vector_store)
    documents = load_data(data, "txt", "pdf")
    index = VectorStoreIndex.from_documents(documents, storage_context=storage_context)
    # Qdrant keeps no sequence that could confirm the labels of the PDF.
    promised = ["page labels alone tell the order"] if make is qdrant else []
    check_engines(index, model, data, *promised)
    if make is not faiss_index:
        # FAISS keeps no texts, so its index has to be saved with its docstore.
        check_engines(VectorStoreIndex.from_vector_store(vector_store), model, data, *promised)


@pytest.mark.parametrize("make", [chroma, qdrant])
def test_ingestion_pipeline(make, model, data, tmp_path):
    vector_store = make(tmp_path)
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=200, chunk_overlap=0), Settings.embed_model],
        vector_store=vector_store,
    )
    pipeline.run(documents=load_data(data, "txt", "pdf"))
    promised = ["page labels alone tell the order"] if make is qdrant else []
    check_engines(VectorStoreIndex.from_vector_store(vector_store), model, data, *promised)


def test_engine_put_together_from_parts(index, model, data):
    retriever = VectorIndexRetriever(index=index, similarity_top_k=10)
    cutoff = SimilarityPostprocessor(similarity_cutoff=0.1)
    order = OrderPreservingPostprocessor(index=index)
    with warns_only():
        before = ask(RetrieverQueryEngine.from_args(retriever, node_postprocessors=[cutoff]), model)
        after = ask(RetrieverQueryEngine.from_args(retriever, node_postprocessors=[cutoff, order]), model)
        check_swap(before, after, texts(data))
        ordered = OrderPreservingRetriever(retriever=retriever)
        assert ask(RetrieverQueryEngine.from_args(ordered, node_postprocessors=[cutoff]), model) == after


# Offsets that count from a parent tell no order, and neither do those of parsers that come one after another.


def test_leaves_of_a_hierarchy(model, data):
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[1024, 256])
    nodes = parser.get_nodes_from_documents(load_data(data, "txt", "pdf"))
    storage_context = StorageContext.from_defaults()
    storage_context.docstore.add_documents(nodes)
    index = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=storage_context)
    check_engines(index, model, data, BY_STORE)


@pytest.mark.parametrize(("make", "options"), [(chroma, {}), (qdrant, {"read_source": "data"})])
def test_sections_of_markdown(make, options, model, data, tmp_path):
    storage_context = StorageContext.from_defaults(vector_store=make(tmp_path))
    parsers: list[Any] = [MarkdownNodeParser(), SentenceSplitter(chunk_size=200, chunk_overlap=20)]
    index = VectorStoreIndex.from_documents(
        load_data(data, "md"), transformations=parsers, storage_context=storage_context
    )
    check_engines(index, model, data, BY_STORE, **options)
