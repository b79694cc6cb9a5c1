"""The arguments of `RetrievalQA.from_chain_type`, as options of our chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from oprag.errors import OptionError
from oprag.langchain.messages import LangChainTemplate, as_template
from oprag.methods.prompts import as_prompts

__all__ = ["classic_options"]

# What each prompt is called here, and its variables: two prompts of one chain may call different things by one name.
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
_CONFIG = ("callbacks", "tags", "metadata")
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
    fields: dict[str, Any] = {"method": chain_type}
    names = _PROMPTS.get(chain_type, _STUFF)
    for name, value in chain_type_kwargs.items():
        if name in names:
            step, variables = names[name]
            if isinstance(value, BasePromptTemplate):
                given = {chain_type_kwargs[key]: ours for key, ours in variables.items() if chain_type_kwargs.get(key)}
                prompts[step] = LangChainTemplate(value, given)
            elif value is not None:
                prompts[step] = value
        elif name == "token_max":
            fields["collapse_tokens"] = value
        elif name not in _WITHOUT_EFFECT:
            known = ", ".join((*names, "token_max"))
            hint = "; use header= for what stands above each passage" if name == "document_prompt" else ""
            raise OptionError(f"chain_type_kwargs: {name} has no counterpart here, there are {known}{hint}", name)
    config = {name: options[name] for name in _CONFIG if options.get(name)}
    fields |= {name: value for name, value in options.items() if name not in (*_CONFIG, "verbose")}
    others = as_prompts(options.get("prompts"), as_template)
    return fields | {"prompts": as_prompts(prompts, as_template, others)}, config
