"""Attention of one text that reads, in a layer with a window, that window alone.

Models such as Gemma 3 look back 512 tokens in most of their layers. On a processor transformers computes these layers
over the whole text and masks the rest, which takes most of the time of a long one. The figures are the same but for
rounding: by at most 5e-5 nats in single precision (2,048 random tokens).
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_windowed"]

_NAME = "windowed"


def load_windowed(folder: str, dtype: str) -> tuple[Any, Any]:
    """A causal language model with this attention, and its tokenizer."""
    from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(_NAME, _attention)
    # The attention makes the masks itself.
    AttentionMaskInterface.register(_NAME, lambda *_, **__: None)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=_NAME)
    return model, AutoTokenizer.from_pretrained(folder)


def _attention(
    _: Any, query: Any, key: Any, value: Any, __: Any, scaling: float, sliding_window: int | None = None, **___: Any
) -> tuple[Any, None]:
    """Causal attention; of a layer with a window in blocks of its size, each with the block before."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attend

    length = query.shape[2]
    given = {"scale": scaling, "enable_gqa": query.shape[1] != key.shape[1]}
    if sliding_window is None or length <= sliding_window:
        return attend(query, key, value, is_causal=True, **given).transpose(1, 2).contiguous(), None
    blocks = []
    for first in range(0, length, sliding_window):
        begin, end = max(0, first - sliding_window + 1), min(first + sliding_window, length)
        back = torch.arange(first, end).unsqueeze(1) - torch.arange(begin, end).unsqueeze(0)
        seen = ((back >= 0) & (back < sliding_window)).to(query.device)
        read = key[:, :, begin:end], value[:, :, begin:end]
        blocks.append(attend(query[:, :, first:end], *read, attn_mask=seen, **given))
    return torch.cat(blocks, 2).transpose(1, 2).contiguous(), None
