"""The methods that answer questions from retrieved chunks, without I/O and independent of any framework.

A method is a generator that yields requests (`Retrieve`, `Generate`, `Embed`, `ReadSources`, `Together`) and receives
their results. `oprag.langchain` and `oprag.llama_index` drive it, sync and async; `register_method` adds a custom
method.
"""

from oprag.methods.answer import Answer, Call, Completion, PassageAnswer, Result, Usage, nothing_found
from oprag.methods.citations import Citation
from oprag.methods.method_answers import MethodAnswers
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import Message, Prompt, Prompts, Template, TextTemplate
from oprag.methods.registry import method_names, register_method
from oprag.methods.run import Embed, Generate, ReadSources, Retrieve, Together, answering
from oprag.methods.task import Task, packed, split_passages
from oprag.methods.window import Window

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
