from collections.abc import Mapping
from typing import Any

import pytest

from oprag.errors import OptionError, PromptError
from oprag.methods import MethodOptions, TextTemplate


def with_prompts(prompts: Mapping[str, Any]) -> MethodOptions:
    return MethodOptions(prompts=prompts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prompts", "error", "message"),
    [
        *[
            ({name: "x"}, OptionError, f"unknown prompt {name!r}; expected one of answer, refine")
            for name in ("anwser", "", "messages", "__class__")
        ],
        *[(prompts, OptionError, "mapping of names to prompts") for prompts in ("{context}", 5, [("answer", "x")])],
        *[({"answer": value}, PromptError, "the answer prompt") for value in (None, 5, b"x", object())],
        *[
            ({"instruction": value}, PromptError, "instruction must be a string")
            for value in (None, 5, TextTemplate("x"))
        ],
    ],
    ids=range(14),
)
def test_what_are_no_prompts_is_refused(prompts, error, message):
    with pytest.raises(error, match=message):
        with_prompts(prompts)
