"""A prepared experiment: open models and embedders, metrics, and the keys of cells and questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple, Self, TypeVar

from oprag._internal.masking import describe
from oprag.compare.data.data_set import Question, whole_text
from oprag.compare.db.records import CELL_COLUMNS, CellRecord, QuestionRecord, key_of
from oprag.compare.experiment import Experiment
from oprag.compare.experiment_methods import PIPELINE, Pipeline, kind_of
from oprag.compare.grid import Cell, axes
from oprag.compare.metrics.judge import Judge, judge_metric
from oprag.compare.metrics.registry import COSINE, NOT_BETTER, Metric, as_metric, metric_name
from oprag.compare.providers.chat_models import Model
from oprag.compare.providers.identity import qualified_name
from oprag.compare.providers.specs import EmbedderSpec, ExperimentEmbedder, ModelSpec
from oprag.errors import ExperimentError, OptionError
from oprag.methods.prompts import STEPS, Prompts, changed_prompts

__all__ = ["PreparedExperiment", "Scorable", "WorkItem"]

T = TypeVar("T")


class WorkItem(NamedTuple):
    """A question in a cell."""

    cell: Cell
    question: Question
    place: tuple[str, str]  # the keys of the cell and of the question


class Scorable(NamedTuple):
    """Number of questions that a metric can score, and why it cannot score the others."""

    questions: int
    reason: str


class PreparedExperiment:
    """An experiment with its models and embedders, ready to be run or planned.

    For a plan, models given by name are not loaded, so that it needs no keys.
    """

    def __init__(self, experiment: Experiment, *, planned: bool = False) -> None:
        given: Any = experiment
        if not isinstance(given, Experiment):
            raise OptionError(
                f"experiment must be an Experiment, such as from Experiment.from_file(), got {describe(given)}", given
            )
        self.experiment = experiment
        self._planned = planned

    @classmethod
    def of(cls, given: Experiment | PreparedExperiment, *, planned: bool = False) -> PreparedExperiment:
        """Prepare an experiment, unless it is already prepared."""
        return given if isinstance(given, PreparedExperiment) else cls(given, planned=planned)

    def replace(self, **parts: Any) -> Self:
        """Make a copy with other models or embedders."""
        other = copy(self)
        vars(other).update(parts)
        return other

    @property
    def cells(self) -> Sequence[Cell]:
        """The cells of the experiment."""
        return self.experiment.grid_cells.cells

    @cached_property
    def models(self) -> dict[str, Model]:
        """The models that a cell or a judge uses, by name in the experiment."""
        answering = [cell.caller for cell in self.cells if cell.caller is not None]
        judging = [judge.model for judge in self._used_judges.values()]
        names = dict.fromkeys([*answering, *judging])
        return {name: self.opened(name, self.source_of(name), planned=self._planned) for name in names}

    @cached_property
    def embedders(self) -> dict[str, ExperimentEmbedder]:
        """The embedders that a cell uses, by name in the experiment."""
        used = dict.fromkeys(cell.embedder for cell in self.cells if cell.embedder)
        return {name: self._open_embedder("embedder", name, self.experiment.embedders[name]) for name in used}

    @cached_property
    def score_embedder(self) -> ExperimentEmbedder | None:
        """The embedder for the cosine metric; None if it is not a metric, or no question has a gold answer."""
        questions = (question for data_set in self.experiment.data.values() for question in data_set.questions)
        if COSINE not in self.experiment.metrics or not any(question.answers for question in questions):
            return None
        return self._open_embedder("score_embedder", "", self.experiment.score_embedder)

    @property
    def _used_judges(self) -> Mapping[str, Judge]:
        """The judges, if any cell generates answers for them."""
        has_answers = any(kind_of(cell.method).writes for cell in self.cells)
        return self.experiment.judges if has_answers else {}

    def source_of(self, name: str) -> ModelSpec | Pipeline:
        """What a model is opened from: its specification, or an own pipeline."""
        if kind_of(name).own:
            own: Pipeline = self.experiment.methods[name.removeprefix(PIPELINE)]
            return own
        return self.experiment.models[name]

    @staticmethod
    def opened(name: str, source: ModelSpec | Pipeline, *, planned: bool = False) -> Model:
        """Open a model."""
        if isinstance(source, Pipeline):
            return Model(f"{name} version {source.version}", source.complete)
        return _opened("model", name, partial(source.open, name, planned=planned))

    def _open_embedder(self, what: str, name: str, spec: EmbedderSpec) -> ExperimentEmbedder:
        return _opened(what, name, partial(spec.open, name, planned=self._planned))

    @cached_property
    def metrics(self) -> list[Metric]:
        """The metrics of the experiment."""
        return [self._metric(one) for one in self.experiment.metrics]

    def _metric(self, given: Any) -> Metric:
        if isinstance(given, str) and (judge := self.experiment.judges.get(given)) is not None:
            return judge_metric(given, judge, self.models[judge.model].identity if self._used_judges else "")
        return _opened("metric", metric_name(given), partial(as_metric, given))

    @cached_property
    def scorable(self) -> dict[str, Scorable]:
        """The number of questions that each metric can score: the question and the method provide what it needs."""
        data = self.experiment.data
        methods: dict[str, set[str]] = {}
        for cell in self.cells:
            methods.setdefault(cell.data, set()).add(cell.method)
        found: dict[str, Scorable] = {}
        for metric in self.metrics:
            sets = [data[name] for name, used in methods.items() if any(map(metric.scores, used))]
            count = sum(metric.has(question) for data_set in sets for question in data_set.questions)
            reason = metric.needs and f"{'the others do not have' if count else 'no question has'} {metric.needs}"
            given = {"answer": "an answer"}.get(metric.of, f"a {metric.of}")
            found[metric.name] = Scorable(count, reason if sets else f"no method produces {given}")
        return found

    @property
    def missing(self) -> Mapping[str, str]:
        """What is missing of each data set that was not there."""
        return {name: one.missing for name, one in self.experiment.data.items() if one.missing is not None}

    @property
    def unscored(self) -> str | None:
        """Why a run is refused: data is missing, or no metric for which higher is better could score an answer."""
        if self.missing:
            return "; ".join(f"the data set {name!r} is missing: {why}" for name, why in self.missing.items())
        quality = {one.name: self.scorable[one.name] for one in self.metrics if not one.not_better}
        if not quality or any(one.questions for one in quality.values()) or not any(cell.caller for cell in self.cells):
            return None
        needs: dict[str, list[str]] = {}
        for name, one in quality.items():
            needs.setdefault(one.reason, []).append(name)
        reasons = ", ".join(f"{why} (for {', '.join(names)})" for why, names in needs.items())
        return (
            f"no answer could be scored, so no model is called: {reasons}. To run without these scores, only "
            'list other metrics, such as metrics = ["paper_token_usage"]'
        )

    @cached_property
    def cell_records(self) -> list[CellRecord]:
        """The records of the cells."""
        return [self._cell_record(cell) for cell in self.cells]

    @cached_property
    def question_records(self) -> list[QuestionRecord]:
        """The records of the questions, grouped by data set."""
        used = {cell.data for cell in self.cells}
        records: list[QuestionRecord] = []
        for name, data_set in self.experiment.data.items():
            if name not in used:
                continue
            texts = data_set.documents
            contents = {name: key_of("document", text) for name, text in texts.items()}
            lengths = {name: len(whole_text(text)) for name, text in texts.items()}
            for question in data_set.questions:
                evidence: Sequence[Any] = [list(span) for span in question.evidence]
                what = (question.text, question.answers, question.choices, question.right_choice, evidence)
                documents = [[document, contents[document]] for document in question.documents]
                key = key_of("question", name, question.id, *what, documents)
                used_lengths = {document: lengths[document] for document in question.documents}
                records.append(QuestionRecord(key, name, question.id, *what, used_lengths, dict(question.about)))
        return records

    def items(self) -> Iterator[WorkItem]:
        """Every question in every cell, question by question, so that all cells progress equally."""
        by_data: dict[str, list[tuple[Cell, str]]] = {}
        for cell, record in zip(self.cells, self.cell_records, strict=True):
            by_data.setdefault(cell.data, []).append((cell, record.key))
        keys = {(record.data, record.name): record.key for record in self.question_records}
        for name, cells in by_data.items():
            # Questions about the same documents follow each other, so that each index is only needed for a short time.
            first: dict[tuple[str, ...], int] = {}
            questions = self.experiment.data[name].questions
            for question in sorted(questions, key=lambda one: first.setdefault(one.documents, len(first))):
                question_key = keys[name, question.id]
                yield from (WorkItem(cell, question, (key, question_key)) for cell, key in cells)

    def described(self) -> dict[str, Any]:
        """The description of the experiment in the results file."""
        experiment = self.experiment
        not_better = [one.name for one in self.metrics if one.function and one.not_better]
        return {
            **({NOT_BETTER: not_better} if not_better else {}),
            "grid": [dict(grid) for grid in experiment.grid],
            "data": {name: len(data_set.questions) for name, data_set in experiment.data.items()},
            "models": {name: model.identity for name, model in self.models.items()},
            "embedders": {name: embedder.name for name, embedder in self.embedders.items()},
            "metrics": list(experiment.metric_names),
            "score_embedder": None if self.score_embedder is None else self.score_embedder.name,
            "count_tokens": getattr(experiment.token_counter, "name", "approximate"),
            "prompts": changed_prompts(experiment.prompts),
            "limits": experiment.limits.model_dump(),
            "prices": {name: price.model_dump() for name, price in experiment.prices.items()},
        }

    @cached_property
    def _common(self) -> dict[str, Any]:
        """The part of the cell identity that is the same in all cells."""
        return {
            "count_tokens": getattr(self.experiment.token_counter, "identity", "approximate"),
            "prompts": _prompts_key(self.experiment.prompts),
            # An answer is stored with its scores, so other metrics need another cell; it shares the replies.
            "metrics": sorted(one.identity for one in self.metrics),
            "score_embedder": None if self.score_embedder is None else self.score_embedder.name,
        }

    def _cell_record(self, cell: Cell) -> CellRecord:
        values = cell.values
        embedder = self.embedders.get(cell.embedder)
        identity = dict(self._common)
        if cell.caller is not None:
            identity["model"] = self.models[cell.caller].identity
        if embedder is not None:
            identity |= {"embedder": embedder.name, "tokenizer": embedder.tokenizer.identity}
        if cell.store in self.experiment.stores:
            identity["store"] = qualified_name(self.experiment.stores[cell.store], f"the store {cell.store!r}")
        # The key contains the names of models: one model under two names makes two cells, which share all replies.
        key = key_of("cell", values, identity)
        stored = {name: one for name, one in values.items() if name in CELL_COLUMNS or one != axes()[name].default}
        return CellRecord(key, stored, identity)


def _opened(what: str, name: str, opening: Callable[[], T]) -> T:
    """Open a model, embedder or metric; errors are raised with its name."""
    try:
        return opening()
    except (ExperimentError, OptionError) as error:
        raise ExperimentError(f"{what}{name and f' {name!r}'}: {error}", error.value) from error


def _prompts_key(prompts: Prompts) -> str:
    """The key of prompts: a hash of the templates rendered with their field names as values."""
    templates: dict[str, Any] = {step: getattr(prompts, step) for step in STEPS}
    shown = {
        step: one.messages({name: f"{{{name}}}" for name in sorted(one.fields)}) for step, one in templates.items()
    }
    texts = [prompts.instruction, prompts.choice_instruction, prompts.cite_instruction]
    return key_of("prompts", shown, texts)
