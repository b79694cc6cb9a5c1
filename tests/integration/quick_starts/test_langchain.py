"""LangChain's quick starts as its documentation has them, then with the retriever as the only other line."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pypdf
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import (
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
)
from pydantic import Field

from oprag.langchain import OrderPreservingRetriever
from tests.integration.quick_starts.checks import BY_STORE, NO_SOURCE, check_prompt, check_swap, in_order, warns_only
from tests.integration.quick_starts.documents import TRANSCRIPT, html_text, text_of

pytestmark = [
    pytest.mark.integration,
    # FAISS and LanceDB use what NumPy and Python have deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

QUESTIONS = [
    "What happens when an exception is raised inside a with statement?",
    "How are attributes of an object looked up?",
    "Who decides which value is used by default, and why?",
]
IN_SEQUENCE = ["in_memory", "chroma", "faiss", "lancedb"]


class Recorder(BaseChatModel):
    """Searches once where it has a tool, then answers; keeps what it reads."""

    read: list[list[AnyMessage]] = Field(default_factory=list)
    tools: Sequence[Any] = ()

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Recorder:
        # A chat model returns another one, which here writes into the same record.
        return self.model_copy(update={"tools": tools, "read": self.read})

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        self.read.append(messages)
        reply = AIMessage("Ada Brand.")
        if self.tools and not any(isinstance(message, ToolMessage) for message in messages):
            asked = next(message.text for message in messages if isinstance(message, HumanMessage))
            reply = AIMessage("", tool_calls=[{"name": self.tools[0].name, "args": {"query": asked}, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    @property
    def prompt(self) -> str:
        """What was read last, as one text."""
        return "\n".join(message.text for message in self.read[-1])


@pytest.fixture
def make_store(embeddings, tmp_path):
    """A vector store as the documentation's tabs make it."""

    def make(name: str) -> Any:
        if name == "chroma":
            from langchain_chroma import Chroma

            return Chroma(
                collection_name="example_collection",
                embedding_function=embeddings,
                persist_directory=str(tmp_path / "chroma_langchain_db"),
            )
        if name == "faiss":
            import faiss
            from langchain_community.docstore.in_memory import InMemoryDocstore
            from langchain_community.vectorstores import FAISS

            return FAISS(
                embedding_function=embeddings,
                index=faiss.IndexFlatL2(len(embeddings.embed_query("hello world"))),
                docstore=InMemoryDocstore(),
                index_to_docstore_id={},
            )
        if name == "lancedb":
            from langchain_community.vectorstores import LanceDB

            return LanceDB(uri=str(tmp_path / "lancedb"), embedding=embeddings)
        if name == "qdrant":
            from langchain_qdrant import QdrantVectorStore
            from qdrant_client import QdrantClient
            from qdrant_client.models import Distance, VectorParams

            client = QdrantClient(":memory:")
            size = len(embeddings.embed_query("sample text"))
            client.create_collection("test", vectors_config=VectorParams(size=size, distance=Distance.COSINE))
            return QdrantVectorStore(client=client, collection_name="test", embedding=embeddings)
        return InMemoryVectorStore(embeddings)

    return make


def found(documents: list[Document]) -> list[tuple[str, str]]:
    return [(document.metadata["source"], document.page_content) for document in documents]


def load_files(folder: Path, ending: str) -> list[Document]:
    from langchain_community.document_loaders import DirectoryLoader, TextLoader

    loader = DirectoryLoader(str(folder), glob=f"**/*.{ending}", loader_cls=TextLoader)
    documents: list[Document] = loader.load()
    return documents


def texts(documents: list[Document]) -> dict[str, str]:
    """The texts of the files that these documents came from."""
    return {source: text_of(Path(source)) for source in {document.metadata["source"] for document in documents}}


# A semantic search engine over PDFs.


def load_pdf_pages(file_path: str) -> list[Document]:
    """The helper of the tutorial."""
    reader = pypdf.PdfReader(file_path)
    return [
        Document(page_content=page.extract_text() or "", metadata={"source": file_path, "page": number})
        for number, page in enumerate(reader.pages)
    ]


@pytest.mark.parametrize("store", [*IN_SEQUENCE, "qdrant"])
def test_semantic_search(store, make_store, data):
    docs = load_pdf_pages("data/language.pdf")
    text_splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200, add_start_index=True)
    all_splits = text_splitter.split_documents(docs)
    vector_store = make_store(store)
    vector_store.add_documents(documents=all_splits)

    with warns_only():
        retriever: Any = vector_store.as_retriever(search_type="similarity", search_kwargs={"k": 8})
        before = retriever.batch(QUESTIONS)
        retriever = OrderPreservingRetriever(vectorstore=vector_store, k=8)
        after = retriever.batch(QUESTIONS)
    check_swap([*map(found, before)], [*map(found, after)], texts(docs))


@pytest.mark.parametrize("store", IN_SEQUENCE)
def test_pdf_loader_without_offsets(store, make_store, data):
    from langchain_community.document_loaders import PyPDFLoader

    docs = [page for file in ("data/language.pdf", "data/data_model.pdf") for page in PyPDFLoader(file).load()]
    text_splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    vector_store = make_store(store)
    vector_store.add_documents(documents=text_splitter.split_documents(docs))

    with warns_only(BY_STORE):
        before = vector_store.as_retriever(search_kwargs={"k": 12}).batch(QUESTIONS)
        after = OrderPreservingRetriever(vectorstore=vector_store, k=12).batch(QUESTIONS)
    check_swap([*map(found, before)], [*map(found, after)], texts(docs))


def test_joined_text_repeats_nothing(make_store, data):
    docs = load_files(data, "txt")
    text_splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=200)
    vector_store = make_store("qdrant")
    vector_store.add_documents(documents=text_splitter.split_documents(docs))

    with warns_only():
        retriever = OrderPreservingRetriever(vectorstore=vector_store, k=40, token_budget=16_384, read_source="data")
        contexts = [retriever.get_context(question) for question in QUESTIONS]
    for context in contexts:
        assert (context.freed_tokens or 0) > 100
        ends = dict.fromkeys(raw_texts(docs), 0)
        for passage in context.passages:
            source = str(passage.source)
            ends[source] = raw_texts(docs)[source].index(passage.text, ends[source]) + len(passage.text)


# An agent and a chain over pages of documentation, in Markdown, whose chunks say nothing but their source.


@pytest.fixture
def pages(make_store, data):
    """A vector store with the pages, as the tutorial fills it."""
    docs = [
        Document(page_content=path.read_text(encoding="utf-8"), metadata={"source": str(path)})
        for path in sorted(data.glob("*.md"))
    ]
    text_splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    all_splits = text_splitter.split_documents(docs)
    vector_store = make_store("in_memory")
    vector_store.add_documents(documents=all_splits)
    return vector_store


HOW_TO_RETRY = "How do I set timeouts and retries, and what was changed about them?"


def page_texts(data: Path) -> dict[str, str]:
    return {str(path): text_of(path) for path in data.glob("*.md")}


def test_rag_agent(pages, data):
    from langchain.agents import create_agent
    from langchain.tools import tool

    def ask(retriever: BaseRetriever) -> list[tuple[str, str]]:
        @tool(response_format="content_and_artifact")
        def retrieve_context(query: str):
            """Find passages of the documentation."""
            retrieved_docs = retriever.invoke(query)
            serialized = "\n\n".join(f"Source: {doc.metadata}\nContent: {doc.page_content}" for doc in retrieved_docs)
            return serialized, retrieved_docs

        model = Recorder()
        agent = create_agent(model, [retrieve_context], system_prompt="Search the documentation, then answer.")
        steps = [*agent.stream({"messages": [HumanMessage(HOW_TO_RETRY)]}, stream_mode="values")]
        _, _, searched, answer = steps[-1]["messages"]
        assert answer.text == "Ada Brand."
        check_prompt(model.prompt, found(searched.artifact))
        return found(searched.artifact)

    with warns_only(BY_STORE):
        before = ask(pages.as_retriever(search_kwargs={"k": 6}))
        after = ask(OrderPreservingRetriever(vectorstore=pages, k=6))
    check_swap([before], [after], page_texts(data))


def test_agent_with_a_retriever_tool(pages, data):
    from langchain.agents import create_agent

    model = Recorder()
    retriever = OrderPreservingRetriever(vectorstore=pages, k=6)
    tool = create_retriever_tool(retriever, "search_docs", "Search the documentation.")
    agent = create_agent(model, [tool], system_prompt="Search before you answer.")
    with warns_only(BY_STORE):
        result = agent.invoke({"messages": [{"role": "user", "content": HOW_TO_RETRY}]})
    assert result["messages"][-1].text == "Ada Brand."
    documents = found(retriever.invoke(HOW_TO_RETRY))
    assert in_order(documents, page_texts(data))
    check_prompt(model.prompt, documents)


async def test_two_step_chain(pages, data):
    from langchain.agents import create_agent
    from langchain.agents.middleware import ModelRequest, dynamic_prompt

    retriever = OrderPreservingRetriever(vectorstore=pages, k=6)

    @dynamic_prompt
    def prompt_with_context(request: ModelRequest) -> str:
        last_query = request.state["messages"][-1].text
        retrieved_docs = retriever.invoke(last_query)
        docs_content = "\n\n".join(doc.page_content for doc in retrieved_docs)
        return f"Answer from these passages alone:\n\n{docs_content}"

    model = Recorder()
    agent = create_agent(model, tools=[], middleware=[prompt_with_context])
    with warns_only(BY_STORE):
        await agent.ainvoke({"messages": [HumanMessage(HOW_TO_RETRY)]})
    documents = found(await retriever.ainvoke(HOW_TO_RETRY))
    assert in_order(documents, page_texts(data))
    assert isinstance(model.read[-1][0], SystemMessage)
    check_prompt(model.read[-1][0].text, documents)


PROMPT = ChatPromptTemplate.from_messages([("system", "Answer from this context:\n\n{context}"), ("human", "{input}")])


@pytest.mark.parametrize("store", ["chroma", "faiss"])
def test_retrieval_chain_over_a_saved_store(store, make_store, embeddings, data, tmp_path):
    from langchain_classic.chains import create_retrieval_chain
    from langchain_classic.chains.combine_documents import create_stuff_documents_chain

    docs = load_files(data, "txt")
    splits = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200).split_documents(docs)
    vector_store = make_store(store)
    vector_store.add_documents(documents=splits)
    if store == "faiss":
        from langchain_community.vectorstores import FAISS

        vector_store.save_local(str(tmp_path / "faiss_index"))
        vector_store = FAISS.load_local(str(tmp_path / "faiss_index"), embeddings, allow_dangerous_deserialization=True)
    else:
        vector_store = make_store(store)

    model = Recorder()
    question_answer_chain = create_stuff_documents_chain(model, PROMPT)
    with warns_only(BY_STORE):
        retriever: Any = vector_store.as_retriever(search_kwargs={"k": 8})
        before = create_retrieval_chain(retriever, question_answer_chain).invoke({"input": QUESTIONS[0]})
        retriever = OrderPreservingRetriever(vectorstore=vector_store, k=8)
        rag_chain = create_retrieval_chain(retriever, question_answer_chain)
        after = rag_chain.invoke({"input": QUESTIONS[0]})
        check_prompt(model.prompt, found(after["context"]))
        pieces = [*rag_chain.stream({"input": QUESTIONS[0]})]
    assert before.keys() == after.keys()
    assert [key for piece in pieces for key in piece] == ["input", "context", "answer"]
    assert found(pieces[1]["context"]) == found(after["context"])
    check_swap([found(before["context"])], [found(after["context"])], texts(docs))


def test_chain_of_runnables(pages, data):
    def format_docs(docs: list[Document]) -> str:
        return "\n\n".join(doc.page_content for doc in docs)

    model = Recorder()
    retriever = OrderPreservingRetriever(vectorstore=pages, k=6)
    rag_chain = (
        {"context": retriever | format_docs, "input": RunnablePassthrough()} | PROMPT | model | StrOutputParser()
    )
    with warns_only(BY_STORE):
        assert rag_chain.invoke(HOW_TO_RETRY) == "Ada Brand."
        check_prompt(model.prompt, found(retriever.invoke(HOW_TO_RETRY)))
        assert rag_chain.batch(QUESTIONS) == ["Ada Brand."] * 3
    assert len(model.read) == 4


# A graph of one's own over web pages, in small chunks that overlap by a half.


def load_web_page(path: str) -> list[Document]:
    """The helper of the tutorial, from a file and with Python's own parser."""
    return [Document(page_content=html_text(Path(path).read_text("utf-8")), metadata={"source": path})]


def test_custom_agent(embeddings, data):
    from langchain.tools import tool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    docs = [load_web_page(path) for path in ("data/argparse.html", "data/logging.html")]
    docs_list = [item for sublist in docs for item in sublist]
    # The tutorial counts with tiktoken, which fetches its tables.
    count_tokens = embeddings.embedder.tokenizer.encode
    text_splitter = RecursiveCharacterTextSplitter(
        chunk_size=100, chunk_overlap=50, length_function=lambda text: len(count_tokens(text).ids)
    )
    doc_splits = text_splitter.split_documents(docs_list)
    vectorstore = InMemoryVectorStore.from_documents(documents=doc_splits, embedding=embeddings)

    question = "What is formatted, and by which attributes of a record?"

    def ask(retriever: BaseRetriever) -> list[tuple[str, str]]:
        @tool
        def retrieve_posts(query: str) -> str:
            """Find passages about the modules."""
            return "\n\n".join(doc.page_content for doc in retriever.invoke(query))

        model = Recorder()
        with_tool = model.bind_tools([retrieve_posts])
        workflow = StateGraph(MessagesState)
        workflow.add_node(
            "generate_query_or_respond", lambda state: {"messages": [with_tool.invoke(state["messages"])]}
        )
        workflow.add_node("retrieve", ToolNode([retrieve_posts]))
        workflow.add_node("generate_answer", lambda state: {"messages": [model.invoke(state["messages"])]})
        workflow.add_edge(START, "generate_query_or_respond")
        workflow.add_conditional_edges("generate_query_or_respond", tools_condition, {"tools": "retrieve", END: END})
        workflow.add_edge("retrieve", "generate_answer")
        workflow.add_edge("generate_answer", END)
        workflow.compile().invoke({"messages": [HumanMessage(question)]})
        documents = found(retriever.invoke(question))
        check_prompt(model.prompt, documents)
        return documents

    with warns_only(BY_STORE):
        before = ask(vectorstore.as_retriever(search_kwargs={"k": 8}))
        after = ask(OrderPreservingRetriever(vectorstore=vectorstore, k=8))
    check_swap([before], [after], texts(docs_list))


# Files of other kinds.


@pytest.mark.parametrize("store", IN_SEQUENCE)
@pytest.mark.parametrize("ending", ["txt", "md", "html", "srt"])
def test_files_of_a_folder(store, ending, make_store, data):
    docs = load_files(data, ending)
    # Transcripts have one short text, which fewer and shorter chunks are enough for.
    size, k = (200, 6) if ending == "srt" else (1000, 12)
    splits = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=size // 5).split_documents(docs)
    vector_store = make_store(store)
    vector_store.add_documents(splits)

    with warns_only(BY_STORE):
        before = vector_store.as_retriever(search_kwargs={"k": k}).batch(QUESTIONS)
        after = OrderPreservingRetriever(vectorstore=vector_store, k=k).batch(QUESTIONS)
    check_swap([*map(found, before)], [*map(found, after)], raw_texts(docs))


def raw_texts(docs: list[Document]) -> dict[str, str]:
    return {document.metadata["source"]: document.page_content for document in docs}


def test_a_folder_of_everything(make_store, data):
    docs = [document for ending in ("txt", "md", "html", "srt") for document in load_files(data, ending)]
    vector_store = make_store("chroma")
    vector_store.add_documents(RecursiveCharacterTextSplitter(chunk_size=1000).split_documents(docs))
    with warns_only(BY_STORE):
        # Without a number of its own the retriever takes that of the paper.
        after = OrderPreservingRetriever(vectorstore=vector_store).invoke(QUESTIONS[0])
    assert len({document.metadata["source"] for document in after}) > 4
    assert len(after) > 20
    assert in_order(found(after), raw_texts(docs))


def test_rows_of_a_table(make_store, data):
    from langchain_community.document_loaders import CSVLoader

    loader = CSVLoader(file_path="data/msft.csv")
    docs = loader.load()
    vector_store = make_store("in_memory")
    vector_store.add_documents(docs)

    with Path("data/msft.csv").open(encoding="utf-8") as file:
        rows = "\n".join(f"{name}: {value}" for row in csv.DictReader(file) for name, value in row.items())
    with warns_only():
        before = vector_store.as_retriever(search_kwargs={"k": 12}).batch(QUESTIONS)
        after = OrderPreservingRetriever(vectorstore=vector_store, k=12).batch(QUESTIONS)
    check_swap([*map(found, before)], [*map(found, after)], {"data/msft.csv": rows})


def test_a_transcript_in_chunks_of_time(make_store, monkeypatch):
    from langchain_community.document_loaders import YoutubeLoader
    from langchain_community.document_loaders.youtube import TranscriptFormat

    said = [SimpleNamespace(text=text, start=7.0 * number, duration=7.0) for number, (_, text) in enumerate(TRANSCRIPT)]
    monkeypatch.setitem(sys.modules, "youtube_transcript_api", youtube_transcripts(said))
    loader = YoutubeLoader.from_youtube_url(
        "https://www.youtube.com/watch?v=TKCMw0utiak",
        transcript_format=TranscriptFormat.CHUNKS,
        chunk_size_seconds=30,
    )
    docs = loader.load()
    vector_store = make_store("in_memory")
    vector_store.add_documents(docs)

    question = "What is done about the wall?"
    with warns_only():
        before = vector_store.as_retriever(search_kwargs={"k": 6}).invoke(question)
        after = OrderPreservingRetriever(vectorstore=vector_store, k=6).invoke(question)
    whole = {"video": " ".join(text for _, text in TRANSCRIPT)}
    check_swap([of_video(before)], [of_video(after)], whole)


def of_video(documents: list[Document]) -> list[tuple[str, str]]:
    """The loader writes the time of a chunk into its source."""
    assert all("watch?v=TKCMw0utiak&t=" in document.metadata["source"] for document in documents)
    return [("video", document.page_content) for document in documents]


def youtube_transcripts(said: list[Any]) -> Any:
    """What asks YouTube for transcripts, with one of our own."""

    class FetchedTranscript(SimpleNamespace):
        pass

    fetched = FetchedTranscript(snippets=said)
    listed = SimpleNamespace(find_transcript=lambda _: SimpleNamespace(fetch=lambda: fetched))
    return SimpleNamespace(
        FetchedTranscript=FetchedTranscript,
        NoTranscriptFound=KeyError,
        TranscriptsDisabled=OSError,
        YouTubeTranscriptApi=lambda: SimpleNamespace(list=lambda _: listed),
    )


# Sections of a Markdown file.

HEADERS = [("#", "Header 1"), ("##", "Header 2"), ("###", "Header 3")]


def test_sections_that_name_no_source_keep_their_rank(make_store, data):
    markdown_document = (data / "openai.md").read_text(encoding="utf-8")
    md_header_splits = MarkdownHeaderTextSplitter(HEADERS, strip_headers=False).split_text(markdown_document)
    text_splitter = RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=30)
    vector_store = make_store("in_memory")
    vector_store.add_documents(text_splitter.split_documents(md_header_splits))

    with warns_only(NO_SOURCE) as messages:
        before = vector_store.as_retriever(search_kwargs={"k": 8}).invoke(HOW_TO_RETRY)
        after = OrderPreservingRetriever(vectorstore=vector_store, k=8).invoke(HOW_TO_RETRY)
    assert len(messages) == 1
    assert after == before


def test_sections_that_name_their_source(make_store, data):
    md_header_splits = []
    for path in sorted(data.glob("*.md")):
        for section in MarkdownHeaderTextSplitter(HEADERS, strip_headers=False).split_text(path.read_text("utf-8")):
            section.metadata["source"] = str(path)
            md_header_splits.append(section)
    text_splitter = RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=30)
    vector_store = make_store("in_memory")
    vector_store.add_documents(text_splitter.split_documents(md_header_splits))

    with warns_only(BY_STORE):
        before = vector_store.as_retriever(search_kwargs={"k": 12}).batch([HOW_TO_RETRY, *QUESTIONS])
        after = OrderPreservingRetriever(vectorstore=vector_store, k=12).batch([HOW_TO_RETRY, *QUESTIONS])
    check_swap([*map(found, before)], [*map(found, after)], page_texts(data))
