"""Likelihood of answers with a Hugging Face model, in this process."""

from __future__ import annotations

import hashlib
import inspect
from functools import cached_property
from pathlib import Path
from typing import Any

from oprag.compare.providers.likelihood import TokenLikelihood
from oprag.errors import MissingExtraError, ModelError, OptionError
from oprag.options import check_count, check_text

__all__ = ["TransformersLikelihood"]


class TransformersLikelihood(TokenLikelihood):
    """Evaluates prompt and answer in one forward pass of a causal language model, through `transformers`.

    If the model supports `logits_to_keep` (all models of transformers 5 do), logits are only computed for the answer,
    since those of a long prompt would need gigabytes. No state is kept between calls, so equal calls return equal
    likelihoods.

    Args:
        model: The name of a model on the Hugging Face Hub, a folder with a model, or a loaded model
            (`transformers.PreTrainedModel`).
        tokenizer: The tokenizer of a loaded model; otherwise None.
        name: Name that identifies a loaded model; required for one, since its weights may have been changed. With None,
            a model given by name is identified by its commit on the hub, or by a digest of the files in its folder.
        window: Maximum number of tokens of prompt and answer together; None for the value in the model configuration.
        dtype: The type of the weights: "auto" for that of the files, or "float32", "bfloat16" or "float16".
        device: The device, such as "cuda"; None for the device of a loaded model, or else the CPU.
        revision: The branch, tag or commit on the hub; None for the default branch.

    Raises:
        MissingExtraError: The extra `huggingface` is not installed.
        OptionError: An option is invalid, or `window` is required.
        ModelError: The model cannot be loaded.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        name: str | None = None,
        window: int | None = None,
        dtype: str = "auto",
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        check_count("window", window)
        check_text("name", name, optional=True)
        named = isinstance(model, str | Path)
        if not named and (tokenizer is None or not name):
            raise OptionError(
                "a loaded model requires its tokenizer and a unique name; pass tokenizer=... and name=...", model
            )
        if named and tokenizer is not None:
            raise OptionError(
                "tokenizer is only valid with a loaded model; a model given by name uses its own tokenizer", tokenizer
            )
        self._source = str(model) if named else ""
        self._given_name = name
        if named:
            model, tokenizer = _load(str(model), dtype, revision)
        self._model = (model if device is None else model.to(device)).eval()
        self._tokenizer = tokenizer
        self._has_logits_to_keep = "logits_to_keep" in inspect.signature(self._model.forward).parameters
        self._window = window or _window(self._model.config)

    @property
    def window(self) -> int:
        """Maximum number of tokens of prompt and answer together."""
        return self._window

    @cached_property
    def name(self) -> str:
        """The given name, or the model with a commit or digest of its weights; plus the type of the weights."""
        if self._given_name:
            source = self._given_name
        elif Path(self._source).is_dir():
            source = f"{Path(self._source).resolve().name}@{_digest(Path(self._source))}"
        else:
            source = f"{self._source}@{getattr(self._model.config, '_commit_hash', None)}"
        return f"huggingface:{source} {str(self._model.dtype).removeprefix('torch.')}"

    def _mean_likelihood(self, given: list[int], scored: list[int]) -> float:
        import torch

        # The logits at each position are those of the next token, so the last token is not part of the input.
        ids = torch.tensor([given + scored[:-1]], device=self._model.device)
        keep = {"logits_to_keep": len(scored)} if self._has_logits_to_keep else {}
        try:
            with torch.inference_mode():
                logits = self._model(input_ids=ids, use_cache=False, **keep).logits[0, -len(scored) :]
                chosen = torch.tensor(scored, device=logits.device).unsqueeze(1)
                return float(logits.float().log_softmax(-1).gather(1, chosen).double().mean())
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(f"the model failed on {len(given) + len(scored):,} tokens: {error}", self.name) from error

    @cached_property
    def _first(self) -> list[int]:
        # Some tokenizers also add a token at the end.
        first: list[int] = self._tokenizer("")["input_ids"][:1]
        return first if first == [self._tokenizer.bos_token_id] else []

    def _tokens(self, text: str) -> list[int]:
        # Special tokens in a text are plain text, which is safe for prompts that contain documents of others.
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)[
            "input_ids"
        ]
        return ids


def _load(model: str, dtype: str, revision: str | None) -> tuple[Any, Any]:
    try:
        import torch  # noqa: F401 - transformers can be imported without it
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError("Likelihood with a Hugging Face model", "huggingface") from error
    try:
        # By default transformers would ask on the terminal whether to run code of the model.
        given: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        loaded = AutoModelForCausalLM.from_pretrained(model, dtype=dtype, **given)
        return loaded, AutoTokenizer.from_pretrained(model, **given)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{model} cannot be loaded as a causal language model: {error}", model) from error


def _window(config: Any) -> int:
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length"):
        window = getattr(text, name, None)
        if isinstance(window, int):
            return window
    raise OptionError("the model configuration does not contain the context length; set window", config)


def _digest(folder: Path) -> str:
    """A digest of all files that affect likelihoods: weights, configuration and tokenizer."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in {".safetensors", ".bin", ".json", ".model", ".txt"}:
            with path.open("rb") as file:
                digest.update(f"{path.name}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
