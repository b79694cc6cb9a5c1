"""The exceptions and warnings of oprag.

    OpragError
    ├── OptionError (ValueError)            an option is unknown or invalid
    ├── ChunkError (TypeError)              a chunk, document or node is invalid
    ├── QueryError (ValueError)             the question is empty or not a string
    ├── BudgetError (ValueError)            no chunk fits the token budget, or a prompt does not fit the model
    ├── MissingPositionError (ValueError)   a chunk has no position, and on_missing_position="error"
    ├── UncertainOrderError (ValueError)    the order of a source is uncertain, and on_uncertain="error"
    ├── MissingSourceError (ValueError)     the source of a chunk is unknown, and a step needs it
    ├── TokenizerError (TypeError)          a tokenizer or token counter returned an unusable result
    ├── EmbeddingError (ValueError)         vectors are missing or unusable
    ├── CacheError (OSError)                a vector cache is corrupt, or cannot be read or written
    ├── InputFileError (OSError)            a text file cannot be read
    ├── DataError (ValueError)              questions or documents do not match their format, or are unusable
    ├── ExperimentError (ValueError)        an experiment is invalid
    ├── ResultsFileError (OSError)          a results file is corrupt, or cannot be read or written
    ├── PromptError (ValueError)            a prompt template is invalid or needs a missing value
    ├── ModelError (RuntimeError)           a model call failed
    ├── SourceReadError (OSError)           a source, or the neighbors of a chunk, cannot be read
    ├── SourceTooLongError (ValueError)     whole sources do not fit, and overflow="error"
    └── MissingExtraError (ImportError)     an optional dependency is not installed

    OpragWarning (UserWarning)
    ├── PositionWarning                     the order of a source's chunks is uncertain
    ├── SourceWarning                       the source of chunks is unknown, or names only parts of a document
    ├── RetrievalWarning                    the retrieved chunks are fewer than requested, or not best first
    ├── ModelWarning                        model calls failed and were skipped
    ├── CacheWarning                        a vector cache cannot be used
    └── SerializationWarning                options that are functions were not saved

`except OpragError` catches all errors. Each error is also a subclass of the matching built-in exception (in
parentheses), and its `value` attribute contains the invalid value. Messages never contain keys or terminal control
characters, and are never huge.
"""

from typing import Any

from oprag._internal.masking import shown
from oprag._internal.text_table import safe

__all__ = [
    "BudgetError",
    "CacheError",
    "CacheWarning",
    "ChunkError",
    "DataError",
    "EmbeddingError",
    "ExperimentError",
    "InputFileError",
    "MissingExtraError",
    "MissingPositionError",
    "MissingSourceError",
    "ModelError",
    "ModelWarning",
    "OpragError",
    "OpragWarning",
    "OptionError",
    "PositionWarning",
    "PromptError",
    "QueryError",
    "ResultsFileError",
    "RetrievalWarning",
    "SerializationWarning",
    "SourceReadError",
    "SourceTooLongError",
    "SourceWarning",
    "TokenizerError",
    "UncertainOrderError",
]

_MAX_LENGTH = 10_000  # characters of a message, whose parts may come from documents


class OpragError(Exception):
    """Base class of all errors that oprag raises.

    Attributes:
        value: The subject of the error, such as the invalid value, the chunk or the path.
    """

    def __init__(self, message: str, value: Any = None) -> None:
        super().__init__(safe(shown(message, _MAX_LENGTH, end=False)))
        self.value = value


class OptionError(OpragError, ValueError):
    """An option is unknown or invalid; raised at construction."""


class ChunkError(OpragError, TypeError):
    """A chunk, document or node has the wrong type, an invalid field, or the rank of another chunk."""


class QueryError(OpragError, ValueError):
    """The question is not a string, or contains only whitespace."""


class BudgetError(OpragError, ValueError):
    """None of the retrieved chunks fits `token_budget`, or a prompt does not fit the model's context window."""


class MissingPositionError(OpragError, ValueError):
    """A retrieved chunk has no position, and `on_missing_position="error"`."""


class UncertainOrderError(OpragError, ValueError):
    """The order of the kept chunks of a source is uncertain, and `on_uncertain="error"`."""


class MissingSourceError(OpragError, ValueError):
    """The source of a chunk is unknown, and stamping or locating needs it."""


class TokenizerError(OpragError, TypeError):
    """A tokenizer returned no usable character offsets, or a token counter returned no usable count."""


class EmbeddingError(OpragError, ValueError):
    """Vectors are missing, are not numbers, or have the wrong count or dimension, or the embedder failed."""


class CacheError(OpragError, OSError):
    """A vector cache is corrupt, belongs to another program or embedder, or cannot be read or written."""


class InputFileError(OpragError, OSError):
    """A text file is missing, is a folder, cannot be opened, is not UTF-8, or is not valid TOML where required."""


class DataError(OpragError, ValueError):
    """Questions or documents cannot be used; the message contains the file and line, or the data set."""


class ExperimentError(OpragError, ValueError):
    """An experiment is invalid or references something unknown; raised before any model call."""


class ResultsFileError(OpragError, OSError):
    """A file is not a results file, is corrupt, or cannot be read or written."""


class PromptError(OpragError, ValueError):
    """A prompt template lacks a required field, has an invalid one, or needs a missing value."""


class ModelError(OpragError, RuntimeError):
    """A model call failed, or a model cannot be loaded; `value` is the call or the model, `__cause__` its own error."""


class SourceReadError(OpragError, OSError):
    """A source, or the neighbors of a chunk, cannot be read; `__cause__` is the error of the function that reads it."""


class SourceTooLongError(OpragError, ValueError):
    """Whole sources do not fit `source_token_budget` or the model's context window, and `overflow="error"`."""


class MissingExtraError(OpragError, ImportError):
    """A required optional dependency is not installed.

    Args:
        feature: The feature that needs it, as the start of a sentence.
        extra: The extra of this package that installs it, or the name of the missing package.
        command: The install command, if the extra alone is not enough.
    """

    def __init__(self, feature: str, extra: str, command: str | None = None) -> None:
        command = command or f"pip install 'oprag[{extra}]'"
        super().__init__(f"{feature} requires an optional dependency; install it with: {command}", extra)
        self._init_args = feature, extra, command

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments; `args` contains the message instead."""
        return type(self), self._init_args


class OpragWarning(UserWarning):
    """Base class of all warnings of oprag."""

    def __init__(self, message: str) -> None:
        super().__init__(safe(shown(message, _MAX_LENGTH, end=False)))


class PositionWarning(OpragWarning):
    """The order of a source's chunks is uncertain: positions are missing, shared or stamped in several calls."""


class SourceWarning(OpragWarning):
    """The source of chunks is unknown, or seems to name only part of a document; each counts as a separate source."""


class RetrievalWarning(OpragWarning):
    """Fewer than `k` chunks were retrieved, or some of them are copies, or they are not best first."""


class ModelWarning(OpragWarning):
    """Model calls failed and were skipped (`on_error="skip"`)."""


class CacheWarning(OpragWarning):
    """A vector cache cannot be used, or not for this embedder, so vectors are computed and not cached."""


class SerializationWarning(OpragWarning):
    """Options that are functions were not saved, and have their defaults after loading."""
