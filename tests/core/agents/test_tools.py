"""The arguments of the reading tools."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from oprag.agents.tools import READING_TOOLS, refusal, schema_of

SCHEMAS = {tool.name: schema_of(tool) for tool in READING_TOOLS}
AROUND: dict[str, Any] = {"number": 1}
RANGE: dict[str, Any] = {"source": "a.txt", "start": 1, "end": 2}
NUMBERS: list[tuple[type[BaseModel], dict[str, Any], str]] = [
    *((SCHEMAS["read_around"], AROUND, name) for name in ("number", "before", "after")),
    *((SCHEMAS["read_range"], RANGE, name) for name in ("start", "end")),
]


@pytest.mark.parametrize(("schema", "args", "name"), NUMBERS)
@pytest.mark.parametrize("value", [True, False, "first", "", None, 1.5, [1]])
def test_what_is_not_a_number_is_refused(schema: type[BaseModel], args: dict[str, Any], name: str, value: Any):
    with pytest.raises(ValidationError) as raised:
        schema.model_validate({**args, name: value})
    assert refusal(raised.value).startswith(f"{name}: Input should be a valid integer")


@pytest.mark.parametrize(("schema", "args", "name"), NUMBERS)
@pytest.mark.parametrize("value", [3, "3", 3.0, " 3 "])
def test_numbers_may_be_texts(schema: type[BaseModel], args: dict[str, Any], name: str, value: Any):
    assert getattr(schema.model_validate({**args, name: value}), name) == 3
