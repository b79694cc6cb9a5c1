"""Causal attention of one long text on a CPU, in blocks of queries that read only the keys they can see.

Most layers of models such as Gemma 3 attend only to the last 512 tokens. On a CPU, transformers computes these layers
over the whole text and masks the rest, which takes most of the time of a long text; and in bfloat16 its kernel has a
quarter of the speed of plain matrix products.
"""

from __future__ import annotations

from typing import Any

__all__ = ["register"]

_NAME = "windowed"
# Queries per block: larger blocks read more masked keys, smaller blocks make more and smaller products.
_BLOCK = 512


def register() -> str:
    """Make this attention known to transformers, and return its name."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(_NAME, _attention)
    # The attention function makes the masks itself.
    AttentionMaskInterface.register(_NAME, lambda *_, **__: None)
    return _NAME


def _attention(
    _: Any, query: Any, key: Any, value: Any, __: Any, scaling: float, sliding_window: int | None = None, **___: Any
) -> tuple[Any, None]:
    """Causal attention; the queries that share a head of keys are one matrix. The softmax is in single precision."""
    import torch

    heads, length = query.shape[1:3]
    groups = key.shape[1]
    window = sliding_window or length
    query = (query * scaling).unflatten(1, (groups, heads // groups))
    blocks = []
    for first in range(0, length, _BLOCK):
        begin, end = max(0, first - window + 1), min(first + _BLOCK, length)
        scores = query[..., first:end, :].flatten(2, 3) @ key[:, :, begin:end].transpose(-1, -2)
        scores = scores.unflatten(2, (heads // groups, end - first)).float()
        back = torch.arange(first, end).unsqueeze(1) - torch.arange(begin, end).unsqueeze(0)
        weights = scores.masked_fill_((back < 0) | (back >= window), float("-inf")).softmax(-1).to(value.dtype)
        read = weights.flatten(2, 3) @ value[:, :, begin:end]
        blocks.append(read.unflatten(2, (heads // groups, end - first)).flatten(1, 2))
    return torch.cat(blocks, 2).transpose(1, 2).contiguous(), None
