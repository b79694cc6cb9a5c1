"""Contriever and Dragon, the encoders of Self-Route, as embedders of an experiment.

They are not sentence-transformers' own models, so `huggingface:PATH` would not know how they are used: Contriever takes
the mean of its token vectors (Izacard et al. 2022, arXiv 2112.09118), Dragon the vector of the first token, and Dragon
has two models, one for questions and one for documents (Lin et al. 2023, arXiv 2302.07452).

    EmbedderSpec(dragon(), tokenizer="huggingface:facebook/dragon-plus-context-encoder")

Both were trained for the inner product; the harness ranks by cosine, whatever the embedder.
What they need: pip install torch transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oprag import DualEncoder

__all__ = ["contriever", "dragon", "encoder"]

Pooling = Literal["mean", "first"]

_LONGEST = 512  # tokens that a BERT model reads; the rest is cut off
_BATCH = 32


def contriever(model: str = "facebook/contriever", device: str = "cpu") -> DualEncoder:
    """Contriever: one model for both, the mean of the token vectors.

    Args:
        model: Its name in the hub, or a folder. Vectors are kept under it: other weights must have another.
        device: Where it runs, such as "cuda".
    """
    return DualEncoder(f"contriever({model})", encoder(model, "mean", device))


def dragon(
    question_model: str = "facebook/dragon-plus-query-encoder",
    document_model: str = "facebook/dragon-plus-context-encoder",
    device: str = "cpu",
) -> DualEncoder:
    """Dragon: a model for questions and one for documents, the vector of the first token.

    Args:
        question_model: The name of the first in the hub, or a folder. Vectors are kept under both names: other weights
            must have others.
        document_model: That of the second.
        device: Where they run.
    """
    return DualEncoder(
        f"dragon({question_model}, {document_model})",
        encoder(question_model, "first", device),
        encoder(document_model, "first", device),
    )


def encoder(model: str, pooling: Pooling, device: str = "cpu") -> Callable[[Sequence[str]], NDArray[np.float32]]:
    """A function from texts to vectors, of shape (number of texts, dimension); the model is loaded when it is called.

    Args:
        model: Its name in the hub, or a folder.
        pooling: "mean" of the token vectors, or the "first".
        device: Where it runs.
    """

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        parts = [
            _encoded(texts[start : start + _BATCH], model, pooling, device) for start in range(0, len(texts), _BATCH)
        ]
        return np.concatenate(parts)

    return encode


def _encoded(texts: Sequence[str], model: str, pooling: Pooling, device: str) -> NDArray[np.float32]:
    import torch

    tokenizer, network = _loaded(model, device)
    read = tokenizer(list(texts), padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt").to(device)
    with torch.inference_mode():
        tokens = network(**read).last_hidden_state
    if pooling == "first":
        vectors = tokens[:, 0]
    else:
        # The mean excludes padding.
        mask = read["attention_mask"].unsqueeze(-1)
        vectors = (tokens * mask).sum(dim=1) / mask.sum(dim=1)
    found: NDArray[np.float32] = vectors.float().cpu().numpy()
    return found


@cache
def _loaded(model: str, device: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    network: Any = AutoModel.from_pretrained(model, trust_remote_code=False)
    return AutoTokenizer.from_pretrained(model, trust_remote_code=False), network.to(device).eval()
