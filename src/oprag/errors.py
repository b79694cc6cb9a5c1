"""Everything that oprag raises or warns about.

    OpragError
    ├── OptionError (ValueError)            an option is unknown or invalid
    ├── ChunkError (TypeError)              a chunk, document or node is not what it should be
    ├── QueryError (ValueError)             the question is empty or not a string
    ├── BudgetError (ValueError)            not one chunk fits the token budget, or a prompt does not fit the model
    ├── MissingPositionError (ValueError)   on_missing_position="error" met a chunk without a position
    ├── MissingSourceError (ValueError)     a step that needs the name of the source has none
    ├── TokenizerError (TypeError)          a tokenizer or token counter does not do its job
    ├── EmbeddingError (ValueError)         an embedder's vectors cannot be used
    ├── CacheError (OSError)                a vector cache is damaged, or cannot be read or written
    ├── IndexFileError (ValueError)         a saved index cannot be read
    ├── InputFileError (OSError)            a text file cannot be read
    ├── DataError (ValueError)              questions or documents are not as their format says, or cannot be used
    ├── ExperimentError (ValueError)        an experiment cannot be run as it is described
    │   └── UntrustedExperimentError        an experiment file has parts that need trust
    ├── ResultsFileError (OSError)          a file of results is damaged, or cannot be read or written
    ├── MeasuringError (RuntimeError)       what was run in a process of its own failed or died
    ├── LikelihoodError (ValueError)        the likelihood of an answer cannot be had
    ├── PromptError (ValueError)            a prompt template is invalid or needs a missing value
    ├── ModelError (RuntimeError)           a call of the model failed
    ├── SourceReadError (OSError)           the whole text of a source cannot be had
    ├── SourceTooLongError (ValueError)     whole sources do not fit, and overflow="error"
    └── MissingExtraError (ImportError)     an optional dependency is not installed

    OpragWarning (UserWarning)
    ├── PositionWarning                     the order of a source's chunks is not certain
    ├── SourceWarning                       chunks do not say which source they came from, or name only parts of one
    ├── RetrievalWarning                    the search brought fewer chunks than were asked for
    ├── ModelWarning                        calls of the model failed and were skipped
    ├── IndexFileWarning                    a kept index cannot be used, or an index cannot be kept
    ├── CacheWarning                        a vector cache cannot be read or written
    └── SerializationWarning                options that were functions could not be loaded

`except OpragError` catches all of them. Each error also is the builtin that fits, and has the offending value
as `value`. Messages hold no keys, and nothing that a terminal obeys.
"""

from typing import Any

from oprag.masking import clean

__all__ = [
    "BudgetError",
    "CacheError",
    "CacheWarning",
    "ChunkError",
    "DataError",
    "EmbeddingError",
    "ExperimentError",
    "IndexFileError",
    "IndexFileWarning",
    "InputFileError",
    "LikelihoodError",
    "MeasuringError",
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
    "UntrustedExperimentError",
]


class OpragError(Exception):
    """Anything that oprag raises.

    Attributes:
        value: The subject of the error: the refused value, the chunk, the path.
    """

    def __init__(self, message: str, value: Any = None) -> None:
        super().__init__(clean(message))
        self.value = value


class OptionError(OpragError, ValueError):
    """An option is unknown or invalid; raised at construction."""


class ChunkError(OpragError, TypeError):
    """A chunk, document or node has a wrong type, a text that is not a string, or a rank used twice."""


class QueryError(OpragError, ValueError):
    """The question is not a string, or has nothing but white space in it."""


class BudgetError(OpragError, ValueError):
    """Not one retrieved chunk fits `token_budget`, or a prompt does not fit the model's context window."""


class MissingPositionError(OpragError, ValueError):
    """`on_missing_position="error"` was asked for, and a retrieved chunk has no position."""


class MissingSourceError(OpragError, ValueError):
    """Stamping or locating needs to know the source of a chunk, and nothing names it."""


class TokenizerError(OpragError, TypeError):
    """A tokenizer gives no usable character offsets, or a token counter gives no usable count."""


class EmbeddingError(OpragError, ValueError):
    """An embedder gave vectors of another number, another dimension, or not finite."""


class CacheError(OpragError, OSError):
    """A vector cache is damaged, belongs to another program or embedder, or cannot be read or written."""


class IndexFileError(OpragError, ValueError):
    """A file is not a saved index, is damaged, or was written by a newer version."""


class InputFileError(OpragError, OSError):
    """A text file is missing, is a folder, cannot be opened, is not UTF-8, or is no TOML where that is wanted."""


class DataError(OpragError, ValueError):
    """Questions or documents cannot be used; the message names the file and the line, or the data set."""


class ExperimentError(OpragError, ValueError):
    """An experiment names what there is not, or cannot be run as it is described; raised before anything is spent."""


class UntrustedExperimentError(ExperimentError):
    """An experiment file has parts that need trust and was read without it; nothing was imported, called or opened."""

    @property
    def needs(self) -> tuple[Any, ...]:
        """The parts, in the order of the file: each with its `place`, its `value` as text, and `why` it needs trust."""
        return tuple(self.value or ())


class ResultsFileError(OpragError, OSError):
    """A file is not a results file, is damaged, or cannot be read or written."""


class MeasuringError(OpragError, RuntimeError):
    """A measured process raised, was killed or crashed."""


class LikelihoodError(OpragError, ValueError):
    """The answer is empty or does not fit the window with its prompt, so its likelihood cannot be had."""


class PromptError(OpragError, ValueError):
    """A prompt template lacks a field, has one that cannot be, or wants a value that there is not."""


class ModelError(OpragError, RuntimeError):
    """A call of the model failed, or it cannot be loaded; `value` is the call or the model, its own error the cause."""


class SourceReadError(OpragError, OSError):
    """The whole text of a retrieved source cannot be read, or lies where it must not be read from."""


class SourceTooLongError(OpragError, ValueError):
    """Whole sources do not fit `source_token_budget` or the model's context window, and `overflow="error"`."""


class MissingExtraError(OpragError, ImportError):
    """An optional dependency is needed and not installed.

    Args:
        feature: The feature that needs it, as the start of a sentence.
        extra: The extra of this package that brings it, or the name of what is missing.
        command: What installs it, if an extra alone does not.
    """

    def __init__(self, feature: str, extra: str, command: str | None = None) -> None:
        command = command or f"pip install 'oprag[{extra}]'"
        super().__init__(f"{feature} needs an optional dependency: {command}", extra)
        self._given = feature, extra, command

    def __reduce__(self) -> tuple[Any, ...]:
        """It is made of other words than it says, which a copy in another process needs to know."""
        return type(self), self._given


class OpragWarning(UserWarning):
    """Anything that oprag warns about."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


class PositionWarning(OpragWarning):
    """The order of a source's chunks is not certain: positions are missing, shared or stamped in several calls."""


class SourceWarning(OpragWarning):
    """Chunks do not say which source they came from, or seem to name parts of one; each then is a source of its own."""


class RetrievalWarning(OpragWarning):
    """A retriever with a limit of its own found fewer chunks than `k`, so `k` had no effect."""


class ModelWarning(OpragWarning):
    """Calls of the model failed, and `on_error="skip"` went on without them."""


class IndexFileWarning(OpragWarning):
    """An index that was kept in a file cannot be used and is made anew, or a new one cannot be kept."""


class CacheWarning(OpragWarning):
    """A vector cache cannot be used, or not for this embedder, so vectors come from the embedder and are not kept."""


class SerializationWarning(OpragWarning):
    """Options that were functions were not saved, and have their defaults after loading."""
