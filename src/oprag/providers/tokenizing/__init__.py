"""Tokenizers and token counters of an experiment, by their names."""

from oprag.providers.tokenizing.counters import COUNTERS, Counter, counter_of
from oprag.providers.tokenizing.tokenizers import NamedTokenizer, tokenizer_of

__all__ = ["COUNTERS", "Counter", "NamedTokenizer", "counter_of", "tokenizer_of"]
