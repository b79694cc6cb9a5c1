"""An experiment with its models and embedders at hand, and the content addresses of all that it will do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Any

from oprag.compare.answer_tables import CellRow, QuestionRow
from oprag.compare.axes import axes
from oprag.compare.cell import Cell
from oprag.compare.content import address, document_address
from oprag.compare.data.data_set import Question
from oprag.compare.embedders import ExperimentEmbedder
from oprag.compare.experiment import Experiment
from oprag.compare.grid import Cells
from oprag.compare.models import Model
from oprag.compare.schema import CELL_COLUMNS
from oprag.compare.scoring import COSINE
from oprag.compare.stores import STORE_NAMES
from oprag.compare.work import Unit
from oprag.errors import ExperimentError, OptionError
from oprag.methods.prompts import STEPS, Prompts
from oprag.providers.functions import required_function
from oprag.providers.tokenizing import counter_of

__all__ = ["Opened"]


@dataclass
class Opened:
    """An experiment that can be run.

    Attributes:
        experiment: The experiment.
        stop: Set when the run is to end; models then wait for no further try.

    Raises:
        OptionError: It is no experiment.
    """

    experiment: Experiment
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        given: Any = self.experiment
        if not isinstance(given, Experiment):
            raise OptionError(f"experiment must be an Experiment, as read_experiment() reads it, got {given!r}", given)

    @cached_property
    def cells(self) -> Cells:
        """The cells of the experiment."""
        return self.experiment.cells()

    @cached_property
    def models(self) -> dict[str, Model]:
        """The models that a cell asks, by their names in the experiment."""
        asked = dict.fromkeys(cell.model for cell in self.cells.cells if cell.model is not None)
        return {name: _opened("model", name, self.experiment.models[name].open, self.stop) for name in asked}

    @cached_property
    def embedders(self) -> dict[str, ExperimentEmbedder]:
        """The embedders that a cell uses, by their names in the experiment."""
        used = dict.fromkeys(cell.embedder for cell in self.cells.cells if cell.embedder)
        return {name: _opened("embedder", name, self.experiment.embedders[name].open) for name in used}

    @cached_property
    def score_embedder(self) -> Any:
        """What embeds answers for their cosine; None where no cosine is wanted, or nothing can have one."""
        asked = (question for data_set in self.experiment.data.values() for question in data_set.questions)
        if COSINE not in self.experiment.metrics or not any(question.answers for question in asked):
            return None
        return _opened("score_embedder", "", self.experiment.score_embedder.open)

    @cached_property
    def keys(self) -> dict[Cell, str]:
        """The content address of each cell."""
        return dict(zip(self.cells.cells, (row.key for row in self.cell_rows), strict=True))

    @cached_property
    def cell_rows(self) -> list[CellRow]:
        """The cells as they are written."""
        return [self._cell_row(cell) for cell in self.cells.cells]

    @cached_property
    def question_rows(self) -> list[QuestionRow]:
        """The questions as they are written, by data set."""
        used = {cell.data for cell in self.cells.cells}
        rows: list[QuestionRow] = []
        for name, data_set in self.experiment.data.items():
            if name not in used:
                continue
            contents = {document: document_address(text) for document, text in data_set.documents.items()}
            rows += [_question_row(name, question, contents) for question in data_set.questions]
        return rows

    def units(self, only: Collection[str] | None = None) -> Iterator[Unit]:
        """Every question in every cell: question by question, so that all cells are equally far at any time.

        Args:
            only: The keys of the questions that are wanted; all by default.
        """
        by_data: dict[str, list[tuple[Cell, str]]] = {}
        for cell, row in zip(self.cells.cells, self.cell_rows, strict=True):
            by_data.setdefault(cell.data, []).append((cell, row.key))
        keys = {(row.data, row.name): row.key for row in self.question_rows}
        for name, cells in by_data.items():
            # Questions about the same documents follow each other, so that each index is held for a while only.
            groups: dict[tuple[str, ...], list[Question]] = {}
            for question in self.experiment.data[name].questions:
                groups.setdefault(question.documents, []).append(question)
            for questions in groups.values():
                for question in questions:
                    question_key = keys[name, question.id]
                    if only is None or question_key in only:
                        yield from (Unit(cell, question, key, question_key) for cell, key in cells)

    def described(self) -> dict[str, Any]:
        """What the results file says about the experiment."""
        experiment = self.experiment
        return {
            "grid": [dict(grid) for grid in experiment.grid],
            "data": {name: len(data_set.questions) for name, data_set in experiment.data.items()},
            "models": {name: model.identity for name, model in self.models.items()},
            "embedders": {name: embedder.name for name, embedder in self.embedders.items()},
            "metrics": list(experiment.metrics),
            "score_embedder": None if self.score_embedder is None else self.score_embedder.name,
            "count_tokens": counter_of(experiment.count_tokens).name,
            "limits": vars(experiment.limits),
            "prices": {name: vars(price) for name, price in experiment.prices.items()},
        }

    @cached_property
    def _common(self) -> dict[str, Any]:
        """What all answers depend on, whatever the cell."""
        return {
            "count_tokens": counter_of(self.experiment.count_tokens).identity,
            "prompts": _prompts_address(self.experiment.prompts),
            # An answer is written with its scores, so others make another cell; its replies are shared all the same.
            "metrics": sorted(self.experiment.metrics),
            "score_embedder": None if self.score_embedder is None else self.score_embedder.name,
        }

    @cached_property
    def _stores(self) -> Mapping[str, str]:
        """What the stores of one's own are; those that a cell uses are there."""
        stores = self.experiment.stores
        for name in dict.fromkeys(cell.store for cell in self.cells.cells if cell.store in stores):
            given = stores[name]
            if isinstance(given, str) and given not in STORE_NAMES:
                _opened("store", name, required_function, given)
        return self.experiment.store_identities

    def _cell_row(self, cell: Cell) -> CellRow:
        values = cell.values()
        embedder = self.embedders.get(cell.embedder)
        identity = dict(self._common)
        if cell.model is not None:
            identity["model"] = self.models[cell.model].identity
        if embedder is not None:
            identity |= {"embedder": embedder.name, "tokenizer": embedder.named_tokenizer.identity}
        if cell.store in self.experiment.stores:
            identity["store"] = self._stores[cell.store]
        # Names are for people; two names for one model make two cells that share all replies.
        key = address("cell", values, identity)
        defaults = {name: axis.default for name, axis in axes().items()}
        options = {
            name: value for name, value in values.items() if name not in CELL_COLUMNS and value != defaults[name]
        }
        return CellRow(key, values, options, identity)


def _opened(what: str, name: str, opening: Callable[..., Any], *arguments: Any) -> Any:
    """What a model, an embedder or a store opens as.

    Raises:
        ExperimentError: It cannot be opened; the message says which one it is.
    """
    try:
        return opening(*arguments)
    except (ExperimentError, OptionError) as error:
        raise ExperimentError(f"{what}{name and f' {name!r}'}: {error}", error.value) from error


def _question_row(data: str, question: Question, contents: Mapping[str, str]) -> QuestionRow:
    evidence: Sequence[Any] = [list(span) for span in question.evidence]
    about = dict(question.about)
    what = (question.text, question.answers, question.choices, question.right_choice, evidence)
    documents = [[name, contents[name]] for name in question.documents]
    key = address("question", data, question.id, *what, documents)
    return QuestionRow(
        key,
        data,
        question.id,
        question.text,
        question.answers,
        question.choices,
        question.right_choice,
        evidence,
        question.documents,
        about,
    )


def _prompts_address(prompts: Prompts) -> str:
    """What tells these prompts from others: how they look with the names of their fields in the fields."""
    shown: dict[str, Any] = {}
    for step in STEPS:
        template = getattr(prompts, step)
        shown[step] = template.messages({name: f"{{{name}}}" for name in sorted(template.fields)})
    texts = [prompts.instruction, prompts.choice_instruction, prompts.cite_instruction]
    return address("prompts", shown, texts)
