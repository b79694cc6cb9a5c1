"""The arguments of `RetrievalQA.from_chain_type`, as options of our chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from oprag.errors import OptionError
from oprag.langchain.messages import LangChainTemplate, as_template
from oprag.methods.prompts import as_prompts

__all__ = ["classic_options"]

_PROMPTS = {
    "stuff": {"prompt": "answer"},
    "map_reduce": {"question_prompt": "map", "combine_prompt": "reduce", "collapse_prompt": "collapse"},
    "refine": {"question_prompt": "answer", "refine_prompt": "refine"},
    "map_rerank": {"prompt": "rerank"},
}
_CONFIG = ("callbacks", "tags", "metadata")
# What LangChain is told that the variables of its prompts are called, and what they are here.
_VARIABLES = {
    "document_variable_name": "context",
    "map_reduce_document_variable_name": "context",
    "combine_document_variable_name": "answers",
    "initial_response_name": "existing_answer",
}
# What these chains print or give besides is in the traces and answers of ours.
_WITHOUT_EFFECT = ("verbose", "return_intermediate_steps", "rank_key", "answer_key", *_VARIABLES)


def classic_options(
    chain_type: str, chain_type_kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands in the arguments, as fields of the chain and as a config.

    Args:
        chain_type: The chain type.
        chain_type_kwargs: What belongs to it.
        options: What else was given.

    Raises:
        OptionError: An argument has no counterpart.
    """
    prompts: dict[str, Any] = {}
    renamed = {chain_type_kwargs[name]: ours for name, ours in _VARIABLES.items() if chain_type_kwargs.get(name)}
    fields: dict[str, Any] = {"method": chain_type}
    names = _PROMPTS.get(chain_type, {"prompt": "answer"})
    for name, value in chain_type_kwargs.items():
        if name in names:
            if isinstance(value, BasePromptTemplate):
                prompts[names[name]] = LangChainTemplate(value, renamed)
            elif value is not None:
                prompts[names[name]] = value
        elif name == "token_max":
            fields["collapse_tokens"] = value
        elif name not in _WITHOUT_EFFECT:
            known = ", ".join((*names, "token_max"))
            hint = "; use header= for what stands above each passage" if name == "document_prompt" else ""
            raise OptionError(f"chain_type_kwargs: {name} has no counterpart here, there are {known}{hint}", name)
    config = {name: options[name] for name in _CONFIG if options.get(name)}
    fields |= {name: value for name, value in options.items() if name not in (*_CONFIG, "verbose")}
    given = as_prompts(options.get("prompts"), as_template)
    return fields | {"prompts": as_prompts(prompts, as_template, given)}, config
