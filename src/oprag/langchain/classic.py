"""The constructor of LangChain's deprecated chains, `from_chain_type`, for `OrderPreservingChain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from oprag.errors import OptionError
from oprag.langchain.backend import LangChainTemplate, as_template
from oprag.methods.prompts import as_prompts

__all__ = ["from_chain_type"]

# Per chain type: LangChain's name of each prompt, and oprag's names of the prompt and its variables. Variables are
# listed per prompt, because two prompts of one chain may use the same variable name for different values.
_CONTEXT = {"document_variable_name": "context"}
_ANSWERS = {"combine_document_variable_name": "answers"}
_STUFF = {"prompt": ("answer", _CONTEXT)}
_PROMPTS: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "map_reduce": {
        "question_prompt": ("map", {"map_reduce_document_variable_name": "context"}),
        "combine_prompt": ("reduce", _ANSWERS),
        "collapse_prompt": ("collapse", _ANSWERS),
    },
    "refine": {
        "question_prompt": ("answer", _CONTEXT),
        "refine_prompt": ("refine", {**_CONTEXT, "initial_response_name": "existing_answer"}),
    },
    "map_rerank": {"prompt": ("rerank", _CONTEXT)},
}
_VARIABLES = (*_CONTEXT, *_ANSWERS, "map_reduce_document_variable_name", "initial_response_name")
_RUN_CONFIG = ("callbacks", "tags", "metadata")
# Extra output of LangChain's chains; here, traces and answers contain it.
_WITHOUT_EFFECT = ("verbose", "return_intermediate_steps", "rank_key", "answer_key", *_VARIABLES)


def from_chain_type(  # noqa: D417 - called without cls
    cls: Any,
    /,
    llm: Runnable[Any, Any],
    chain_type: str = "stuff",
    chain_type_kwargs: Mapping[str, Any] | None = None,
    *,
    return_source_documents: bool = False,
    **options: Any,
) -> Runnable[Any, dict[str, Any]]:
    """Create a chain for code that was written for `RetrievalQA.from_chain_type`.

    Args:
        llm: The model.
        chain_type: The method: stuff, map_reduce, refine, map_rerank, or any other method.
        chain_type_kwargs: The prompts, under LangChain's names for this chain type (`prompt`, `question_prompt`,
            `combine_prompt`, `collapse_prompt`, `refine_prompt`), and `token_max`.
        return_source_documents: Whether the documents are returned, under the key "source_documents".
        **options: `retriever` or `vectorstore`, `input_key` ("query" by default), `output_key` ("result" by
            default); callbacks, tags, metadata and verbose, as for LangChain's chains; and the options of this
            class.

    Returns:
        The chain, which also accepts a plain string.

    Raises:
        ValidationError: An option is unknown or invalid.
    """
    fields, config = _fields(chain_type, chain_type_kwargs or {}, options)
    fields = {"input_key": "query", "output_key": "result", **fields}
    fields["documents_key"] = "source_documents" if return_source_documents else None
    chain: Runnable[Any, dict[str, Any]] = cls(llm=llm, **fields)
    return chain.with_config(config) if config else chain  # type: ignore[arg-type]


def _fields(
    chain_type: str, chain_type_kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Convert the arguments of `RetrievalQA.from_chain_type` to fields of the chain and a config."""
    prompts: dict[str, Any] = {}
    fields: dict[str, Any] = {"method": chain_type}
    names = _PROMPTS.get(chain_type, _STUFF)
    for name, value in chain_type_kwargs.items():
        if name in names:
            step, variables = names[name]
            given = {chain_type_kwargs[key]: ours for key, ours in variables.items() if chain_type_kwargs.get(key)}
            if value is not None:
                prompts[step] = LangChainTemplate(value, given) if isinstance(value, BasePromptTemplate) else value
        elif name == "token_max":
            fields["collapse_tokens"] = value
        elif name not in _WITHOUT_EFFECT:
            known = ", ".join((*names, "token_max"))
            hint = "; use header= for a line above each passage" if name == "document_prompt" else ""
            raise OptionError(f"chain_type_kwargs: {name} is not supported, expected one of {known}{hint}", name)
    config = {name: options[name] for name in _RUN_CONFIG if options.get(name)}
    fields |= {name: value for name, value in options.items() if name not in (*_RUN_CONFIG, "verbose")}
    others = as_prompts(options.get("prompts"), as_template)
    return fields | {"prompts": as_prompts(prompts, as_template, others)}, config
