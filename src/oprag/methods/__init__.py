"""The methods that answer questions from retrieved chunks, without I/O and independent of any framework.

A method is a generator that yields requests (`Retrieve`, `Generate`, `Embed`, `ReadSources`, `Together`) and receives
their results. `oprag.langchain` and `oprag.llama_index` drive it, sync and async; `register_method` adds a custom
method.
"""

from typing import TYPE_CHECKING

from oprag._internal.lazy import loader

__all__ = [
    "Answer",
    "Call",
    "Citation",
    "Completion",
    "Embed",
    "Generate",
    "Message",
    "MethodAnswers",
    "MethodOptions",
    "PassageAnswer",
    "Prompt",
    "Prompts",
    "ReadSources",
    "Result",
    "Retrieve",
    "Task",
    "Template",
    "TextTemplate",
    "Together",
    "Usage",
    "Window",
    "answering",
    "method_names",
    "nothing_found",
    "packed",
    "register_method",
    "split_passages",
]

# Imported on first access: a retriever needs the options of the methods, not the methods.
_PLACES = {
    "Answer": "oprag.methods.answer",
    "Call": "oprag.methods.answer",
    "Citation": "oprag.methods.citations",
    "Completion": "oprag.methods.answer",
    "Embed": "oprag.methods.run",
    "Generate": "oprag.methods.run",
    "Message": "oprag.methods.prompts",
    "MethodAnswers": "oprag.methods.method_answers",
    "MethodOptions": "oprag.methods.options",
    "PassageAnswer": "oprag.methods.answer",
    "Prompt": "oprag.methods.prompts",
    "Prompts": "oprag.methods.prompts",
    "ReadSources": "oprag.methods.run",
    "Result": "oprag.methods.answer",
    "Retrieve": "oprag.methods.run",
    "Task": "oprag.methods.task",
    "Template": "oprag.methods.prompts",
    "TextTemplate": "oprag.methods.prompts",
    "Together": "oprag.methods.run",
    "Usage": "oprag.methods.answer",
    "Window": "oprag.methods.window",
    "answering": "oprag.methods.run",
    "method_names": "oprag.methods.registry",
    "nothing_found": "oprag.methods.answer",
    "packed": "oprag.methods.task",
    "register_method": "oprag.methods.registry",
    "split_passages": "oprag.methods.task",
}

if TYPE_CHECKING:
    from oprag.methods.answer import Answer, Call, Completion, PassageAnswer, Result, Usage, nothing_found
    from oprag.methods.citations import Citation
    from oprag.methods.method_answers import MethodAnswers
    from oprag.methods.options import MethodOptions
    from oprag.methods.prompts import Message, Prompt, Prompts, Template, TextTemplate
    from oprag.methods.registry import method_names, register_method
    from oprag.methods.run import Embed, Generate, ReadSources, Retrieve, Together, answering
    from oprag.methods.task import Task, packed, split_passages
    from oprag.methods.window import Window

__getattr__ = loader(__name__, _PLACES, renames=False)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
