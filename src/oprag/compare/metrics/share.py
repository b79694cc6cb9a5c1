"""The share of the long-context tokens that were read."""

from __future__ import annotations

from oprag.options import check_count

__all__ = ["long_context_share"]


def long_context_share(tokens_read: int, tokens_of_sources: int) -> float | None:
    """How much was read, as a share of what reading the sources whole would have taken.

    The cost that Self-Route reports (Li et al. 2024, arXiv 2407.16833). It is above 1 where a question was routed on:
    the retrieved chunks were read, and then the whole sources. Over many questions the mean of the shares gives short
    documents the weight of long ones; the sum of what was read over the sum of the sources gives each token the same.

    Args:
        tokens_read: What the model read for one question, over all its calls.
        tokens_of_sources: What the same question costs with the whole sources. Both counted by the same tokenizer, and
            both with or both without the prompt around the context.

    Returns:
        From 0; None where the sources have no tokens.

    Raises:
        OptionError: A count is no whole number from 0.

    Example:
        >>> long_context_share(2_000, 125_000)
        0.016
    """
    check_count("tokens_read", tokens_read, optional=False, least=0)
    check_count("tokens_of_sources", tokens_of_sources, optional=False, least=0)
    return tokens_read / tokens_of_sources if tokens_of_sources else None
