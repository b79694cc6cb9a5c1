"""LlamaIndex's nodes as its stores have them, changed without loading LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["united", "with_metadata"]


def with_metadata(node: Any, added: Mapping[str, Any]) -> Any:
    """A copy of a node with more metadata, which is neither embedded nor shown to the model."""
    return node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_embed_metadata_keys": united([node.excluded_embed_metadata_keys, [*added]]),
            "excluded_llm_metadata_keys": united([node.excluded_llm_metadata_keys, [*added]]),
        }
    )


def united(lists: Iterable[list[str]]) -> list[str]:
    """The keys of several lists, each once."""
    return list(dict.fromkeys(key for keys in lists for key in keys))
