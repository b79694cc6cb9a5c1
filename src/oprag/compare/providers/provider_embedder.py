"""Embedders by name: the packaged embedder, sentence encoders of Hugging Face, or any that LangChain supports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from oprag.compare.providers.identity import plain_settings
from oprag.compare.providers.names import LOCAL
from oprag.embedding.embedder import Embedder
from oprag.embedding.identity import digest_of
from oprag.embedding.question_vectors import QuestionVectors
from oprag.embedding.static import local_embedder
from oprag.errors import EmbeddingError, ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.masking import describe, reason
from oprag.options import check_names
from oprag.token_counters import HUGGINGFACE

__all__ = ["HuggingFaceEmbedder", "ProviderEmbedder", "embedder_of"]

# Folders with the same model for other engines; not loaded here.
_OTHER_ENGINES = {"onnx", "openvino"}
_WEIGHTS = (".safetensors", ".bin")
_CONFIG = (".json", ".txt")
_DIGITS = 16  # hex digits of a hash


@cache
def embedder_of(name: str) -> Embedder:
    """Load an embedder by name, "local" or PROVIDER:MODEL; loaded once per process."""
    return local_embedder() if name == LOCAL else ProviderEmbedder(name)


class ProviderEmbedder:
    """PROVIDER:MODEL of LangChain's `init_embeddings`; embeds each question once, and shortens errors to one line."""

    def __init__(self, name: str, feature: str | None = None, **settings: Any) -> None:
        self._given_name = name
        self._embedder = _load(name, feature or f"--embeddings {name}", settings)
        self._questions = QuestionVectors(self._embedder, None)
        # An embedder that does not expose its settings has a name that is only valid in this process.
        persistent = self._embedder.persistent
        self.name: str = self._embedder.name if persistent else f"{name} {digest_of(plain_settings(settings, name))}"

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._run(self._questions.of, texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._run(self._embedder.embed_documents, texts)

    def _run(self, embed: Any, texts: Sequence[str]) -> Any:
        try:
            return embed(texts)
        except OpragError:
            raise
        except Exception as error:
            raise EmbeddingError(
                f"the embeddings {self._given_name!r} failed: {reason(error)}", self._given_name
            ) from error


def _load(name: str, feature: str, settings: Mapping[str, Any]) -> Any:
    provider, _, model = name.partition(":")
    if not provider.strip() or not model.strip():
        raise OptionError(f"embeddings must be {LOCAL} or PROVIDER:MODEL, got {describe(name)}", name)
    try:
        from langchain.embeddings import init_embeddings

        from oprag.langchain.embedder import as_embedder
    except ImportError as error:
        raise MissingExtraError(feature, "langchain") from error
    try:
        return as_embedder(init_embeddings(name, **settings))
    except Exception as error:
        raise OptionError(f"cannot use the embeddings {name!r}: {reason(error)}", name) from error


class HuggingFaceEmbedder:
    """A `sentence-transformers` model from a folder or the hub, through LangChain; normalizes vectors by default."""

    def __init__(self, model: str, settings: Mapping[str, Any]) -> None:
        if not all(map(find_spec, ("langchain_huggingface", "sentence_transformers"))):
            raise MissingExtraError(f"The embedder {HUGGINGFACE}:{model}", HUGGINGFACE)
        from langchain_huggingface import HuggingFaceEmbeddings

        try:
            check_names(settings, set(HuggingFaceEmbeddings.model_fields) - {"model_name"})
        except OptionError as error:
            raise ExperimentError(f"{HUGGINGFACE}:{model}: {error}", error.value) from error
        self._model = model
        self._settings = {
            **settings,
            "encode_kwargs": {"normalize_embeddings": True, **settings.get("encode_kwargs", {})},
        }
        self._lock = Lock()

    @cached_property
    def name(self) -> str:
        """A hash of the files in the folder, or the name on the hub; plus a hash of the settings."""
        folder = Path(self._model).expanduser()
        settings = plain_settings(self._settings, self._model)
        settings = {setting: value for setting, value in settings.items() if value != {}}
        if folder.is_dir():
            # Without the path, which may differ on another machine.
            return f"{HUGGINGFACE} folder {digest_of([_folder_hash(folder), settings])}"
        return f"{HUGGINGFACE}({self._model}) {digest_of(settings)}"

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._run(lambda: [self._embeddings.embed_query(text) for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._run(lambda: self._embeddings.embed_documents(list(texts)))

    def _run(self, embed: Any) -> Any:
        # One call at a time: each uses all cores, and tokenizers are not thread-safe.
        with self._lock:
            try:
                return embed()
            except Exception as error:
                raise EmbeddingError(f"{HUGGINGFACE}:{self._model} failed: {reason(error)}", self._model) from error

    @cached_property
    def _embeddings(self) -> Any:
        from langchain_huggingface import HuggingFaceEmbeddings

        # Code that comes with a model only runs if the settings allow it.
        model_kwargs = {"trust_remote_code": False, **(self._settings.get("model_kwargs") or {})}
        return HuggingFaceEmbeddings(model_name=self._model, **{**self._settings, "model_kwargs": model_kwargs})


def _folder_hash(folder: Path) -> str:
    """A hash of all files that affect the vectors: configuration, vocabulary and weights."""
    parts = []
    for path in sorted(_files(folder)):
        with path.open("rb") as file:
            parts.append([path.relative_to(folder).as_posix(), hashlib.file_digest(file, "sha256").hexdigest()])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _OTHER_ENGINES:
            continue
        if path.is_dir():
            yield from _files(path)
        # Folders often contain the weights in two formats; then only .safetensors is loaded.
        elif path.suffix in _CONFIG or (
            path.suffix in _WEIGHTS and (path.suffix == _WEIGHTS[0] or not any(folder.glob(f"*{_WEIGHTS[0]}")))
        ):
            yield path
