"""One question in one cell by itself: nothing is shared, so what a run gives must be the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprag import Context, build_context
from oprag._internal.sync_async import Limit, Step, Steps, run_sync
from oprag.compare.data.data_set import Question
from oprag.compare.experiment_methods import CONTROLS
from oprag.compare.grid import Cell
from oprag.index.document_index import DocumentIndex
from oprag.methods.answer import Answer, Completion
from oprag.methods.prompts import Prompt
from oprag.methods.run import Backend, Vectors, drive
from oprag.methods.task import Task

__all__ = ["answer_alone"]


class _Alone(Backend):
    """A driver's backend over the public index."""

    def __init__(
        self, cell: Cell, documents: Mapping[str, Any], embedder: Any, tokenizer: Any, model: Callable[[str], Any]
    ) -> None:
        super().__init__(limit=Limit(4))
        self._cell = cell
        self._documents = documents
        self._embedder = embedder
        self._model = model
        self._index = DocumentIndex.from_texts(
            documents,
            embedder,
            tokenizer,
            splitter=cell.split.splitter,
            chunk_size=cell.split.size,
            chunk_overlap=cell.split.overlap,
        )

    def find(self, question: str) -> Steps[Context]:
        context_options = self._cell.context_options
        depth = context_options.max_candidates or context_options.k or len(self._index)
        context: Context = yield Step(
            lambda: build_context(
                self._index.search(question, depth, self._cell.search),
                self._cell.options.numbered(context_options),
                question_vector=self._index.question_vector(question),
                read_neighbors=self._index.neighbors,
            )
        )
        return context

    def call(self, prompt: Prompt) -> Steps[Completion]:
        return Completion((yield Step(lambda: self._model(prompt.text))))

    def embedding(self) -> Any:
        raise NotImplementedError

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        asked = yield Step(lambda: self._embedder.embed_questions(questions))
        return asked, (yield Step(lambda: self._embedder.embed_documents(texts)))

    def read(self, source: str) -> Steps[str]:
        text = yield Step(lambda: self._documents[source])
        return text if isinstance(text, str) else "\n\n".join(text)


def answer_alone(
    cell: Cell,
    question: Question,
    documents: Mapping[str, Any],
    embedder: Any,
    tokenizer: Any,
    model: Callable[[str], Any],
) -> Answer:
    """The answer, with every call made for it alone."""
    task = Task(question.text, cell.options, cell.context_options, question.choices)
    own = {name: documents[name] for name in question.documents}
    backend = _Alone(cell, own, embedder, tokenizer, model)
    answer = run_sync(drive(task, backend, method=CONTROLS.get(cell.method)))
    assert isinstance(answer, Answer)
    return answer
