"""Sentence encoders of Hugging Face, from a folder or the hub, loaded when something is embedded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from oprag.compare.providers.identity import plain_settings
from oprag.embedding.identity import digest_of
from oprag.errors import EmbeddingError, ExperimentError, MissingExtraError, OptionError
from oprag.masking import reason
from oprag.options import check_names
from oprag.token_counters import HUGGINGFACE

__all__ = ["HuggingFaceEmbedder"]

# The same model in a form for other engines, which is not loaded here.
_OTHER_FORMS = {"onnx", "openvino"}
_WEIGHTS = (".safetensors", ".bin")
_SMALL = (".json", ".txt")
_DIGITS = 16  # of a hash


class HuggingFaceEmbedder:
    """A model of `sentence-transformers`, from its folder or the hub, through LangChain; vectors have the length 1."""

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
        """A hash of the files in the folder, or the name in the hub; and the settings."""
        folder = Path(self._model).expanduser()
        settings = plain_settings(self._settings, self._model)
        settings = {setting: value for setting, value in settings.items() if value != {}}
        if folder.is_dir():
            # It may lie elsewhere on another machine.
            return f"{HUGGINGFACE} folder {digest_of([_hash_of(folder), settings])}"
        return f"{HUGGINGFACE}({self._model}) {digest_of(settings)}"

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._embedded(lambda: [self._embeddings.embed_query(text) for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._embedded(lambda: self._embeddings.embed_documents(list(texts)))

    def _embedded(self, embed: Any) -> Any:
        # One at a time: it uses all cores for each, and tokenizers cannot be used twice at a time.
        with self._lock:
            try:
                return embed()
            except Exception as error:
                raise EmbeddingError(f"{HUGGINGFACE}:{self._model} failed: {reason(error)}", self._model) from error

    @cached_property
    def _embeddings(self) -> Any:
        from langchain_huggingface import HuggingFaceEmbeddings

        # Code that comes with a model is run only where the settings say so.
        model_kwargs = {"trust_remote_code": False, **(self._settings.get("model_kwargs") or {})}
        return HuggingFaceEmbeddings(model_name=self._model, **{**self._settings, "model_kwargs": model_kwargs})


def _hash_of(folder: Path) -> str:
    """A hash of all that makes the vectors: settings, words and weights."""
    parts = []
    for path in sorted(_files(folder)):
        with path.open("rb") as file:
            parts.append([path.relative_to(folder).as_posix(), hashlib.file_digest(file, "sha256").hexdigest()])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _OTHER_FORMS:
            continue
        if path.is_dir():
            yield from _files(path)
        # Old weights often lie beside the new ones, which are those that are loaded.
        elif path.suffix in _SMALL or (
            path.suffix in _WEIGHTS and (path.suffix == _WEIGHTS[0] or not any(folder.glob(f"*{_WEIGHTS[0]}")))
        ):
            yield path
