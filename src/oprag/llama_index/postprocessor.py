"""The order as a node postprocessor."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import ConfigDict

from oprag.build import assemble, build_context
from oprag.context import Context
from oprag.fields import AssemblyFields, callables
from oprag.given import Given
from oprag.llama_index.nodes import chunks_of, nodes_of, prompted
from oprag.llama_index.saving import LEFT_OUT, loaded, without_functions

__all__ = ["OrderPreservingPostprocessor"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingPostprocessor(AssemblyFields, BaseNodePostprocessor):
    """Puts retrieved nodes into the order of their source.

    Ranks are the places in the given list, so it stands behind rerankers and cutoffs, as the last postprocessor. A
    token budget counts what LlamaIndex's synthesizers show of a node, its metadata included.

    Args:
        annotate: Give copies of the nodes with rank, score, position and span under the metadata key "oprag", which is
            neither embedded nor shown to the model.
        **options: The options of `oprag.Assembly`. `stitch` is off by default: the given nodes come back, the same
            objects. With `stitch=True` there is one node a passage.

    Raises:
        ValidationError: An option is unknown or has a value that it cannot have (pydantic's error, which is a
            ValueError).

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> def node(text, page, score):
        ...     metadata = {"file_name": "abc", "page_label": page}
        ...     return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)
        >>> nodes = [node("ten", "10", 0.9), node("preface", "iv", 0.8), node("nine", "9", 0.7)]
        >>> [scored.text for scored in OrderPreservingPostprocessor().postprocess_nodes(nodes)]
        ['preface', 'nine', 'ten']
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    @classmethod
    def class_name(cls) -> str:
        """The name under which it is serialized."""
        return "OrderPreservingPostprocessor"

    def get_context(self, nodes: list[NodeWithScore]) -> Context:
        """The context that these nodes, best first, make: passages, what was dropped and why, tokens and text.

        The text is stitched, whatever `stitch` says about the nodes.

        Raises:
            ChunkError: Something is no `NodeWithScore`.
            BudgetError: Nodes were given, and not one fits `token_budget`.
        """
        return build_context(chunks_of(nodes), self._assembly(stitch=True))

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,  # noqa: ARG002
    ) -> list[NodeWithScore]:
        assembly = self._assembly()
        show = None if assembly.token_budget is None else partial(prompted, stitched=assembly.stitch)
        return nodes_of(assemble(Given(chunks_of(nodes), show=show), assembly), annotate=self.annotate)

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        # Nothing in it waits, so a thread would only cost time.
        return self._postprocess_nodes(nodes, query_bundle)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The options as values that JSON can hold; functions are left out, and named under "left_out"."""
        return without_functions(super().to_dict(**kwargs), callables(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """A postprocessor from `to_dict`; what was left out there can be given as a keyword.

        Raises:
            ValidationError: An option is unknown or has a value that it cannot have.
        """
        return cls(**loaded(data, kwargs))

    def __getstate__(self) -> dict[str, Any]:
        functions, mine = callables(self), dict(self.__dict__)
        state = super().__getstate__()
        options = dict(state["__dict__"])
        # LlamaIndex deletes what cannot be pickled, from the object itself.
        self.__dict__.update(mine)
        lost = [name for name in functions if name not in options]
        return {**state, "__dict__": options | ({LEFT_OUT: lost} if lost else {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "__dict__": loaded(state["__dict__"], {})})
