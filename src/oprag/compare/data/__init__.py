"""Question sets, in the formats in which they are published and in a plain one of our own."""

from typing import TYPE_CHECKING

from oprag.lazy import loader

__all__ = ["DataSet", "Evidence", "Question", "format_names", "read_data"]

if TYPE_CHECKING:
    from oprag.compare.data.data_set import DataSet, Evidence, Question
    from oprag.compare.data.read import format_names, read_data

__getattr__ = loader(
    __name__,
    {
        "DataSet": "oprag.compare.data.data_set",
        "Evidence": "oprag.compare.data.data_set",
        "Question": "oprag.compare.data.data_set",
        "format_names": "oprag.compare.data.read",
        "read_data": "oprag.compare.data.read",
    },
)
