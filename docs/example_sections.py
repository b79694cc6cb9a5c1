"""Reading the docstrings of this package: a section may be called Example, where Griffe knows Examples alone."""

from typing import Any

import griffe

__all__ = ["ExampleSections"]


class ExampleSections(griffe.Extension):
    """Makes a section of examples of each `Example:`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
