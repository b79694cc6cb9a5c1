"""What the LlamaIndex examples share. Nothing of it is needed with an index and a model of your own."""

from pydoc_data.topics import topics
from typing import Any, cast

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import EventPayload
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import LLM, CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeWithScore
from pydantic import PrivateAttr

from oprag import LocalEmbedder
from oprag.llama_index import StampPositions
from parts.places import as_read
from parts.stand_in import reply_to

__all__ = ["LocalEmbedding", "Reading", "StandIn", "reference_index"]


def reference_index() -> VectorStoreIndex:
    """The Python language reference, which comes with Python, in nodes that are stamped with their positions."""
    reference = Document(text="\n\n".join(topics.values()), metadata={"file_name": "python-reference"})
    return VectorStoreIndex.from_documents(
        [reference],
        transformations=[SentenceSplitter(chunk_size=160, chunk_overlap=20), StampPositions()],
        embed_model=LocalEmbedding(),
    )


class StandIn(CustomLLM):
    """Copies a sentence from what it is given."""

    @property
    def metadata(self) -> LLMMetadata:
        """What is known about the model."""
        return LLMMetadata(model_name="stand-in")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002
        """Reply."""
        return CompletionResponse(text=reply_to(prompt, prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:  # noqa: ARG002, FBT001, FBT002
        """Reply, in one piece."""
        yield CompletionResponse(text=reply_to(prompt, prompt), delta=reply_to(prompt, prompt))


class Reading:
    """Sees what a model reads."""

    def __init__(self, llm: LLM) -> None:
        self._seen = LlamaDebugHandler(print_trace_on_end=False)
        llm.callback_manager = CallbackManager([self._seen])

    def chunks(self, nodes: list[NodeWithScore]) -> list[int]:
        """The numbers of the nodes, in the sequence in which they were read."""
        payloads = [start.payload or {} for start, _ in self._seen.get_llm_inputs_outputs()]
        prompts = [str(payload[EventPayload.PROMPT]) for payload in payloads]
        return as_read("\n".join(prompts), ((one.metadata["chunk_index"], one.text) for one in nodes))


class LocalEmbedding(BaseEmbedding):
    """The embedder that needs no key and no download."""

    _embedder: LocalEmbedder = PrivateAttr(default_factory=LocalEmbedder)

    def _get_text_embedding(self, text: str) -> list[float]:
        return cast("list[float]", self._embedder.embed_documents([text])[0].tolist())

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)
