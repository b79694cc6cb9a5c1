"""Whether an embedder may cost money: what does not run on this machine may."""

from __future__ import annotations

from typing import Any

__all__ = ["runs_here"]

# Parts of the names of modules whose embeddings run on the machine that they are called on.
_HERE = {
    *("fake", "fastembed", "gpt4all", "huggingface", "instructor", "langchain_core", "langchain_huggingface"),
    *("langchain_ollama", "llamacpp", "llamafile", "mock_embed_model", "model2vec", "ollama", "sentence_transformer"),
}
# Classes of such modules that ask a server which somebody pays for.
_ELSEWHERE = ("Endpoint", "Inference", "API", "Hub")


def runs_here(embeddings: Any) -> bool:
    """Whether embeddings of a framework are known to run on this machine.

    Args:
        embeddings: Embeddings of LangChain or LlamaIndex.
    """
    kind = type(embeddings)
    return not _HERE.isdisjoint(kind.__module__.split(".")) and not any(word in kind.__name__ for word in _ELSEWHERE)
