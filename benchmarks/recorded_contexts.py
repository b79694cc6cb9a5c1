"""Contexts and prompts of many inputs as hashes, to check whether a code change altered any of them.

    python -m benchmarks.recorded_contexts --data FOLDER --write before.jsonl
    python -m benchmarks.recorded_contexts --data FOLDER --compare before.jsonl

Inputs are real documents and questions, with the metadata that loaders, splitters and careless pipelines leave. The
results are the same on every machine; differences are listed by input.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from benchmarks.data_sets import read_set
from benchmarks.found import FoundDocuments, FoundNodes
from benchmarks.langchain_embeddings import LocalEmbeddings
from benchmarks.langchain_model import FakeChatModel
from benchmarks.llama_index_embedding import LocalEmbedding
from benchmarks.llama_index_model import FakeLLM
from oprag import Chunk, DocumentIndex, LocalEmbedder, build_context, neighbors_among
from oprag.langchain import OrderPreservingChain, OrderPreservingCompressor, OrderPreservingRetriever
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine

SETS = (
    "chroma_spans",
    "cuad_leval",
    "fairytaleqa_books",
    "kg_rag_sec10q",
    "narrativeqa_books",
    "qmsum",
    "quality_leval",
)
DOCUMENTS = 5
FOUND = 48
CHARACTERS_ON_A_PAGE = 3_000
METHODS = ("stuff", "map_reduce", "refine", "map_rerank", "step_down", "reciprocal", "long_context", "self_route")

OPTIONS: dict[str, Sequence[Any]] = {
    "k": (None, None, 4, 16, 40),
    "token_budget": (None, None, 600, 4_000),
    "order": ("source", "source", "source", "rank", "reverse_rank", "edges", "random"),
    "seed": (0, 7),
    "source_ranking": ("best_first", "best_first", "best_last", "score_sum", "name"),
    "on_missing_position": ("last", "last", "first", "drop"),
    "source_key": (None, None, None, "file_name", ("file_name", "source")),
    "position_key": (None, None, None, "start_index", ("page", "start_index")),
    "similarity_threshold": (None, None, None, 0.2, 0.5),
    "redundancy_threshold": (None, None, None, 0.6, 0.9),
    "min_chunks": (0, 0, 3),
    "neighbors": (0, 0, 0, 1),
    "separator": ("\n\n", "\n\n", "", " | "),
    "gap": (None, None, "[...]"),
    "header": (None, None, "[{number}] {source}, page {page}, {start}-{end}, rank {rank}"),
}
"""The values to draw from; repeated values are drawn more often."""


class Found(NamedTuple):
    """The search results for a question, best first."""

    question: str
    chunks: list[Chunk]


def found_in(data: Path, questions: int) -> Iterator[tuple[str, list[Chunk], list[Found], Mapping[str, str]]]:
    """Yield the chunks of each set, the results of its search, and the texts of its sources."""
    embedder = LocalEmbedder()
    for name in SETS:
        read = read_set(data / name)
        texts = dict(list(read.texts.items())[:DOCUMENTS])
        index = DocumentIndex.from_texts(texts, embedder, embedder.tokenizer)
        about = [one for one in read.questions if one.document_id in texts or set(one.source_documents) & set(texts)]
        asked = about[:: max(1, len(about) // questions)][:questions]
        yield name, list(index.chunks), [Found(one.text, index.search(one.text, FOUND)) for one in asked], texts


def _offsets(chunk: Chunk, number: int, _: random.Random) -> dict[str, Any]:  # noqa: ARG001
    return {"source": _source(chunk), "start_index": _start(chunk)}


def _stamped(chunk: Chunk, number: int, _: random.Random) -> dict[str, Any]:
    return {"source": _source(chunk), "chunk_index": number, "chunk_numbering": "n0123456789ab"}


def _pages(chunk: Chunk, number: int, _: random.Random) -> dict[str, Any]:  # noqa: ARG001
    page, offset = divmod(_start(chunk), CHARACTERS_ON_A_PAGE)
    return {"source": f"{_source(chunk)}.pdf", "page": page, "page_label": str(page + 1), "start_index": offset}


def _pages_alone(chunk: Chunk, number: int, _: random.Random) -> dict[str, Any]:  # noqa: ARG001
    return {"file_name": f"{_source(chunk)}.pdf", "page_label": str(_start(chunk) // CHARACTERS_ON_A_PAGE + 1)}


def _nothing(chunk: Chunk, number: int, _: random.Random) -> dict[str, Any]:  # noqa: ARG001
    return {"source": _source(chunk)}


def _dirty(chunk: Chunk, number: int, chance: random.Random) -> dict[str, Any]:
    start = _start(chunk)
    values: dict[str, Sequence[Any]] = {
        "source": (_source(chunk), _source(chunk), None, "", 7, "\x1b[31mred"),
        "file_name": ("a.txt", None),
        "start_index": (start, start, str(start), -1, None, math.nan, 2**70, True, [start]),
        "end_index": (start + len(chunk.text), start, None),
        "chunk_index": (number, number, str(number), float(number), -3, None, "x"),
        "page": (start // CHARACTERS_ON_A_PAGE, str(start // CHARACTERS_ON_A_PAGE), "iv", None),
        "total_pages": (900, 3, "many"),
        "start_seconds": (start / 15, "00:01:30", None),
    }
    return {key: chance.choice(some) for key, some in values.items() if chance.random() < 0.5}


METADATA: dict[str, Callable[[Chunk, int, random.Random], dict[str, Any]]] = {
    "offsets": _offsets,
    "stamped": _stamped,
    "pages": _pages,
    "pages alone": _pages_alone,
    "nothing": _nothing,
    "dirty": _dirty,
}


def _source(chunk: Chunk) -> str:
    return str(chunk.metadata["source"])


def _start(chunk: Chunk) -> int:
    return int(chunk.metadata["start_index"])


def documents_of(found: Found, kind: str, everything: Sequence[Chunk], chance: random.Random) -> list[Document]:
    """Return the found chunks as documents with metadata of a kind; ids are those of the chunks."""
    numbers = {chunk.id: number for number, chunk in enumerate(everything)}
    return [
        Document(chunk.text, id=chunk.id, metadata=METADATA[kind](chunk, numbers[chunk.id], chance))
        for chunk in found.chunks
    ]


def nodes_of(found: Found, kind: str, everything: Sequence[Chunk], chance: random.Random) -> list[NodeWithScore]:
    """Return the same as nodes; offsets are stored as LlamaIndex does, and numbered nodes are linked."""
    numbers = {chunk.id: number for number, chunk in enumerate(everything)}
    nodes = []
    for rank, document in enumerate(documents_of(found, kind, everything, chance)):
        chunk = found.chunks[rank]
        node = TextNode(text=document.page_content, id_=f"node-{chunk.id}", metadata=document.metadata)
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=_source(chunk))
        if kind == "offsets":
            node.start_char_idx, node.end_char_idx = _start(chunk), _start(chunk) + len(chunk.text)
            node.metadata = {"file_name": _source(chunk)}
        if kind == "stamped":
            node.metadata = {"file_name": _source(chunk)}
            for relation, step in ((NodeRelationship.PREVIOUS, -1), (NodeRelationship.NEXT, 1)):
                number = numbers[chunk.id] + step
                if 0 <= number < len(everything) and _source(everything[number]) == _source(chunk):
                    node.relationships[relation] = RelatedNodeInfo(node_id=f"node-{everything[number].id}")
        nodes.append(NodeWithScore(node=node, score=1 - rank / len(found.chunks)))
    return nodes


def options_from(chance: random.Random, *, vectors: bool = True, neighbors: bool = True) -> dict[str, Any]:
    """Some options, drawn."""
    drawn = {name: chance.choice(values) for name, values in OPTIONS.items()}
    if not vectors:
        drawn |= {"similarity_threshold": None, "redundancy_threshold": None}
    if not neighbors:
        drawn["neighbors"] = 0
    if drawn["k"] is not None:
        drawn["min_chunks"] = min(drawn["min_chunks"], drawn["k"])
    return drawn


class Log:
    """The prompts that a model has read; each reply depends only on the prompt."""

    def __init__(self) -> None:
        self.prompts: list[list[str]] = []

    def reply(self, texts: list[str]) -> str:
        self.prompts.append(texts)
        number = int(_hash(texts)[:6], 16)
        if "questions about this text" in texts[-1]:
            return "\n".join(f"What happens at place {number + part}?" for part in range(4))
        return f"Answer {number}.\nConfidence: {number % 101}"


class ChatModel(FakeChatModel):
    """A scripted chat model of LangChain."""

    log: Any

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = self.log.reply([str(message.content) for message in messages])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


class Model(FakeLLM):
    """A scripted chat model of LlamaIndex."""

    log: Any

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:  # noqa: ARG002
        """The reply."""
        text = self.log.reply([message.content or "" for message in messages])
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text))


def recorded(data: Path, questions: int, draws: int) -> Iterator[dict[str, str]]:
    """Yield the result of each input, as a row with its name and a hash."""
    embedder = LocalEmbedder()
    embeddings, embed_model = LocalEmbeddings(embedder), LocalEmbedding(embedder)
    for name, everything, answers, texts in found_in(data, questions):
        around = neighbors_among(everything)
        for number, found in enumerate(answers):
            for kind in METADATA:
                for draw in range(draws):
                    where = f"{name} {number} {kind} {draw}"
                    chance = random.Random(where)
                    yield _row(f"core {where}", _of_core, found, kind, everything, around, embedder, chance)
                    yield _row(f"retriever {where}", _of_retriever, found, kind, everything, embeddings, chance)
                    yield _row(f"compressor {where}", _of_compressor, found, kind, everything, chance)
                    yield _row(
                        f"postprocessor {where}", _of_postprocessor, found, kind, everything, embed_model, chance
                    )
            for method in METHODS:
                where = f"{name} {number} {method}"
                chance = random.Random(where)
                yield _row(f"chain {where}", _of_chain, found, method, everything, embeddings, texts, chance)
                yield _row(f"engine {where}", _of_engine, found, method, everything, embed_model, texts, chance)


def _of_core(
    found: Found, kind: str, everything: Sequence[Chunk], around: Any, embedder: Any, chance: random.Random
) -> Any:
    drawn = options_from(chance)
    vectors = [None] * len(found.chunks)
    question = None
    if drawn["similarity_threshold"] is not None or drawn["redundancy_threshold"] is not None:
        vectors = list(embedder.embed_documents([chunk.text for chunk in found.chunks]))
        question = embedder.embed_questions([found.question])[0]
    documents = documents_of(found, kind, everything, chance)
    chunks = [
        Chunk(one.page_content, rank, metadata=one.metadata, id=one.id, score=1 - rank / FOUND, vector=vectors[rank])
        for rank, one in enumerate(documents)
    ]
    return _of_context(
        build_context(chunks, **drawn, stitch=chance.random() < 0.8, question_vector=question, read_neighbors=around)
    )


def _of_retriever(found: Found, kind: str, everything: Sequence[Chunk], embeddings: Any, chance: random.Random) -> Any:
    retriever = OrderPreservingRetriever(
        retriever=FoundDocuments(documents=documents_of(found, kind, everything, chance)),
        embeddings=embeddings,
        stitch=chance.random() < 0.3,
        **options_from(chance, neighbors=False),
    )
    given = [[one.id, one.page_content] for one in retriever.invoke(found.question)]
    return given, _of_context(retriever.get_context(found.question))


def _of_compressor(found: Found, kind: str, everything: Sequence[Chunk], chance: random.Random) -> Any:
    compressor = OrderPreservingCompressor(**options_from(chance, vectors=False, neighbors=False))
    documents = documents_of(found, kind, everything, chance)
    return [[one.id, one.page_content] for one in compressor.compress_documents(documents, found.question)]


def _of_postprocessor(
    found: Found, kind: str, everything: Sequence[Chunk], embed_model: Any, chance: random.Random
) -> Any:
    postprocessor = OrderPreservingPostprocessor(
        embed_model=embed_model, stitch=chance.random() < 0.3, **options_from(chance, neighbors=False)
    )
    nodes = nodes_of(found, kind, everything, chance)
    processed = postprocessor.postprocess_nodes(nodes, query_bundle=QueryBundle(found.question))
    same = set(map(id, nodes))
    return [[id(one) in same, one.get_content()] for one in processed]


def _of_chain(
    found: Found,
    method: str,
    everything: Sequence[Chunk],
    embeddings: Any,
    texts: Mapping[str, str],
    chance: random.Random,
) -> Any:
    log = Log()
    chain = OrderPreservingChain(
        llm=ChatModel(log=log),
        retriever=FoundDocuments(documents=documents_of(found, "offsets", everything, chance)),
        embeddings=embeddings,
        **_answering(method, texts, chance),
    )
    result = chain.invoke({"input": found.question})
    return log.prompts, result["answer"], [one.page_content for one in result["context"]]


def _of_engine(
    found: Found,
    method: str,
    everything: Sequence[Chunk],
    embed_model: Any,
    texts: Mapping[str, str],
    chance: random.Random,
) -> Any:
    log = Log()
    engine = OrderPreservingQueryEngine(
        llm=Model(log=log),
        retriever=FoundNodes(nodes_of(found, "offsets", everything, chance)),
        embed_model=embed_model,
        **_answering(method, texts, chance),
    )
    response = engine.query(found.question)
    return log.prompts, str(response), [one.get_content() for one in response.source_nodes]


def _answering(method: str, texts: Mapping[str, str], chance: random.Random) -> dict[str, Any]:
    """The options of a chain or an engine."""
    return {
        "method": method,
        "read_source": texts,
        "passage_tokens": chance.choice((256, 1_024)),
        "cite": chance.random() < 0.3,
        "k": 12,
        "max_concurrency": 1,
        "source_token_budget": 20_000,
        "overflow": "truncate_middle",
    }


def _of_context(context: Any) -> Any:
    return (
        context.text,
        context.tokens,
        [[chunk.rank, chunk.source] for chunk in context.kept],
        [drop.chunk.rank for drop in context.dropped],
        [[passage.text, [list(span) for span in passage.spans]] for passage in context.passages],
    )


def _row(name: str, make: Callable[..., Any], *args: Any) -> dict[str, str]:
    """Return the result or the raised error, with the kinds of warnings, as a row."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = make(*args)
        except Exception as error:  # noqa: BLE001 - an error is a result as well
            made = f"{type(error).__name__}"
    kinds = sorted({one.category.__name__ for one in caught})
    return {"name": name, "hash": _hash([made, kinds]), "error": made if isinstance(made, str) else ""}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, sort_keys=True).encode()).hexdigest()


def main() -> None:
    """Record, or compare with a record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=12, help="questions of each set")
    parser.add_argument("--draws", type=int, default=10, help="draws of options for each question and kind of metadata")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", type=Path)
    group.add_argument("--compare", type=Path)
    given = parser.parse_args()
    rows = recorded(given.data, given.questions, given.draws)
    if given.write:
        count = errors = 0
        with given.write.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
                count, errors = count + 1, errors + bool(row["error"])
        print(f"recorded {count:,} results, {errors:,} of them errors")
        return
    before = {row["name"]: row for row in map(json.loads, given.compare.read_text(encoding="utf-8").splitlines())}
    count, different = 0, []
    for row in rows:
        count += 1
        if before.get(row["name"]) != row:
            different.append(row["name"])
    missing = len(before) - count
    print("\n".join(different[:50]))
    print(f"compared {count:,} results: {len(different):,} differ, {missing:,} missing")
    sys.exit(bool(different or missing))


if __name__ == "__main__":
    main()
