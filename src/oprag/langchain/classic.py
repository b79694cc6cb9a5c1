"""The arguments of `RetrievalQA.from_chain_type`, converted for `OrderPreservingChain.from_chain_type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.prompts import BasePromptTemplate

from oprag.errors import OptionError
from oprag.langchain.messages import LangChainTemplate, as_template
from oprag.methods.prompts import as_prompts

__all__ = ["classic_fields"]

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


def classic_fields(
    chain_type: str, chain_type_kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Convert the arguments of `RetrievalQA.from_chain_type` to fields of the chain and a config."""
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
            hint = "; use header= for a line above each passage" if name == "document_prompt" else ""
            raise OptionError(f"chain_type_kwargs: {name} is not supported, expected one of {known}{hint}", name)
    config = {name: options[name] for name in _RUN_CONFIG if options.get(name)}
    fields |= {name: value for name, value in options.items() if name not in (*_RUN_CONFIG, "verbose")}
    others = as_prompts(options.get("prompts"), as_template)
    return fields | {"prompts": as_prompts(prompts, as_template, others)}, config
