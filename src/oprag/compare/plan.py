"""Estimate of the calls, tokens and money of an experiment: a run with models that only count their calls."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oprag._internal.tokens import count
from oprag.compare.analysis.settings import counted, money_text
from oprag.compare.data.data_set import Question
from oprag.compare.db.records import FailedCall, Reply, Spent, Vector, WorkCache, key_of, named_error
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.experiment import Experiment
from oprag.compare.experiment_methods import UNKNOWN_USAGE, kind_of
from oprag.compare.grid import Cell
from oprag.compare.providers.chat_models import Model
from oprag.compare.providers.identity import LOCAL
from oprag.compare.providers.specs import EmbedderSpec, ExperimentEmbedder
from oprag.compare.running.engine import Engine
from oprag.compare.running.prepared import PreparedExperiment, Scorable
from oprag.compare.running.retrieval import Retrieval
from oprag.compare.running.run import RunState
from oprag.compare.spending import Limits, Spending
from oprag.embedding.vector_cache import Kind, text_keys
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Prompt
from oprag.methods.run import Embed, ReadSources, Retrieve

__all__ = ["MemoryCache", "Plan", "make_plan"]

_REPLY = 100  # estimated tokens of a reply if the model has no output limit
_PLANNED = "planned"  # finish reason of placeholder replies
_GENERATED = "-generated-question-of-the-plan-"  # in every question that a placeholder reply contains
_QUESTIONS = 32  # in a placeholder reply; the method uses as many as it needs


@dataclass(frozen=True)
class ModelPlan:
    """The planned calls of one model; identical calls count once."""

    calls: int
    input_tokens: int  # by the token counter of the experiment
    output_tokens: int  # the model's output limit per reply, or 100 if none is set
    money: float | None  # None if the model has no price
    longest_reply: int  # tokens that the limits reserve for a reply: the model's output limit, or 1,024


@dataclass(frozen=True)
class EmbeddingPlan:
    """What is left to embed by an embedder that costs money."""

    tokens: int  # by its tokenizer
    money: float | None  # None if the embedder has no price


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The planned work and cost of an experiment.

    Replies are not known in advance, so calls that depend on replies are estimated with placeholders: `self_route`
    always makes its second call, and `step_down` and `reciprocal` get as many other questions as they request.

    Attributes:
        cells: Number of cells.
        combinations: Number of combinations of axis values in the grids.
        repeated: Number of combinations that are equivalent to another one.
        questions: Number of questions in all data sets that are used.
        answers: Number of answers: one for each question of each cell.
        done: Number of answers that are already in the results file.
        failed: Number of answers that failed in earlier runs; `retry_failed` retries them.
        models: The planned calls, by model.
        failures: Number of answers that cannot be generated, by reason, such as a token budget that no chunk fits.
        embedders: What is left to embed, by embedder that costs money; the plan uses the packaged embedder instead, and
            shares none of their calls. If empty, the plan and the run have the same contexts.
        limits: The spending limits.
        spent: Calls, tokens and money spent by earlier runs.
        scorable: Number of questions that each metric can score, and what the metric needs.
        unscored: Why a run would be refused because no answer could be scored; None if some answers can be scored.
        missing: What is missing of each data set that is not there. The plan then only counts cells, questions and
            answers.
    """

    cells: int
    combinations: int
    repeated: int
    questions: int
    answers: int
    limits: Limits
    unscored: str | None
    missing: Mapping[str, str]
    done: int = 0
    failed: int = 0
    models: Mapping[str, ModelPlan] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    embedders: Mapping[str, EmbeddingPlan] = field(default_factory=dict)
    spent: Spent = Spent()  # noqa: RUF009 - frozen
    scorable: Mapping[str, Scorable] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Number of calls that the run will make."""
        return sum(model.calls for model in self.models.values())

    @property
    def tokens(self) -> int:
        """Number of input and output tokens of all calls."""
        return sum(model.input_tokens + model.output_tokens for model in self.models.values())

    @property
    def money(self) -> float | None:
        """Cost of all calls, and of embedding where it is known; None if a model has no price."""
        embedding = [one.money for one in self.embedders.values() if one.money is not None]
        costs = [*(model.money for model in self.models.values()), *embedding]
        return None if None in costs or not costs else sum(cost for cost in costs if cost is not None)

    def describe(self) -> str:
        """The plan as plain text."""
        return "\n".join(_lines(self))


def make_plan(
    experiment: Experiment | PreparedExperiment,
    path: str | os.PathLike[str] | None = None,
    *,
    retry_failed: bool = False,
    keep: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Estimate the calls, tokens and money of a run without calling a model or an embedder that costs money.

    Models given by name are not loaded, so neither API keys nor model files are needed. Unless `keep` is set, no
    file is written. Models of earlier runs are recognized by their specification: if it now refers to another model,
    such as a changed file, only `run` detects it.

    Args:
        experiment: The experiment; if it is already prepared, its models are known exactly.
        path: The results file that the run will continue; None for a new run.
        retry_failed: Whether the run will retry questions that failed before.
        keep: Whether to store the vectors of the plan in the results file for the run to reuse; the file is
            created if missing.
        on_progress: Called with the number of planned answers, and the number of all answers.

    Returns:
        The plan; `describe()` returns it as text.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written.
        MissingExtraError: A package that the experiment needs is not installed.
    """
    prepared = PreparedExperiment.of(experiment, planned=True)
    experiment = prepared.experiment
    with closing(ResultsFile(path)) if path is not None else nullcontext() as file:
        sizes = {name: len(data_set.questions) for name, data_set in experiment.data.items()}
        cells, combinations = experiment.grid_cells
        plan = Plan(
            cells=len(cells),
            combinations=combinations,
            repeated=combinations - len(cells),
            questions=sum(sizes[name] for name in {cell.data for cell in cells}),
            answers=sum(sizes[cell.data] for cell in cells),
            limits=experiment.limits,
            unscored=prepared.unscored,
            missing=prepared.missing,
        )
        if prepared.missing:
            return plan
        costly = tuple(name for name, embedder in prepared.embedders.items() if embedder.paid)
        found = {} if file is None else file.outcomes(experiment.name)
        state = RunState([*prepared.items()], found, retry_failed=retry_failed)
        replies = MemoryCache(file)
        # The run has no use for the vectors of a stand-in embedder.
        cache = file if keep and file is not None and not costly else replies
        stand_ins: dict[str, Any] = {name: _StandIn(prepared.embedders[name], cache) for name in costly}
        models = {name: _CountingModel(experiment, name) for name in prepared.models}
        counting = prepared.replace(
            experiment=experiment.model_copy(update={"max_concurrency": 1}),
            models={name: Model(one.identity, models[name]) for name, one in prepared.models.items()},
            embedders=prepared.embedders | stand_ins,
        )
        retrieval = _PlannedRetrieval(counting, cache)
        failures: Counter[str] = Counter()
        engine = _PlanningEngine(counting, retrieval, replies, Spending(experiment, Limits(), Spent()))
        with closing(retrieval):
            for number, outcome in enumerate(engine.run(state.waiting), 1):
                if outcome.error is not None:
                    failures[named_error(outcome.error)] += 1
                if on_progress is not None:
                    on_progress(number, len(state.waiting))
        spent = Spent() if file is None else file.spent(experiment.name)
    spending = Spending(experiment, experiment.limits, spent)
    return replace(
        plan,
        done=state.answered,
        failed=state.failed_before,
        models={
            name: ModelPlan(one.calls, *one.usage[:2], spending.cost(name, one.usage), spending.longest_reply(name))
            for name, one in models.items()
            if one.calls
        },
        failures=failures,
        embedders={
            name: EmbeddingPlan(one.tokens, spending.cost(name, Usage(one.tokens))) for name, one in stand_ins.items()
        },
        spent=spent,
        scorable=prepared.scorable,
    )


class MemoryCache:
    """A cache in memory over another one, which is only read."""

    def __init__(self, below: WorkCache | None = None) -> None:
        self._below = below
        self._replies: dict[str, Reply] = {}
        self._vectors: dict[tuple[str, bytes], Vector] = {}

    def reply(self, key: str) -> Reply | None:
        """The reply with this key; None if it is missing."""
        return self._replies.get(key) or (None if self._below is None else self._below.reply(key))

    def put_reply(self, reply: Reply) -> Reply:
        """Store a reply; return the stored one."""
        return self._replies.setdefault(reply.key, reply)

    def put_failure(self, call: FailedCall) -> None:
        """Store nothing: a failed call is only counted in a results file."""

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[Vector | None]:
        """The vector of each text hash; None for a missing one."""
        missing = [key for key in hashes if (embedder, key) not in self._vectors]
        below = self._below.vectors(embedder, missing) if self._below is not None else [None] * len(missing)
        found = dict(zip(missing, below, strict=True))
        return [self._vectors.get((embedder, key), found.get(key)) for key in hashes]

    def put_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: Vector) -> None:
        """Store vectors, of shape (number of hashes, dimension)."""
        self._vectors |= {(embedder, key): vector for key, vector in zip(hashes, vectors, strict=True)}


class _CountingModel:
    """Counts the calls of a model and their tokens; each reply is the number of a placeholder."""

    def __init__(self, experiment: Experiment, name: str) -> None:
        self._spec = experiment.models.get(name)  # None for an own pipeline
        self._count = experiment.token_counter
        self.calls = 0
        self.usage = Usage()

    def __call__(self, prompt: Prompt) -> Completion:
        self.calls += 1
        usage = UNKNOWN_USAGE
        if self._spec is not None:
            longest = self._spec.max_reply_tokens
            usage = Usage(count(prompt.text, self._count), _REPLY if longest is None else longest, estimated=True)
        self.usage = self.usage.plus(usage)
        return Completion(f"{self.calls:032}", usage=usage, finish_reason=_PLANNED)


def _placeholder(number: str, step: str, tokens: int) -> str:
    """A reply in the format that the step expects."""
    if step == "route":
        return "unanswerable"
    if step == "variants":
        return "\n".join(f"What is {number}{_GENERATED}{line}?" for line in range(1, _QUESTIONS + 1))
    if step == "pipeline":
        return json.dumps({"answer": number, "chunks": None})
    text = f"{number} {'word ' * max(0, tokens - 8)}".rstrip()
    return f"{text}\nConfidence: 50" if step == "rerank" else text


class _StandIn:
    """The packaged embedder in place of one that costs money; counts the tokens that the other would embed."""

    def __init__(self, replaced: ExperimentEmbedder, cache: WorkCache) -> None:
        self._local = EmbedderSpec(LOCAL).open()
        self._replaced = replaced.name
        self._cache = cache
        self.name = f"{self._local.name} instead of {replaced.name}"
        self.tokenizer = replaced.tokenizer
        self.tokens = 0

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._embedded(texts, "question")

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self._embedded(texts, "document")

    def _embedded(self, texts: Sequence[str], kind: Kind) -> Any:
        stored = self._cache.vectors(self._replaced, text_keys(texts, kind))
        self.tokens += sum(self.tokenizer(text) for text, known in zip(texts, stored, strict=True) if known is None)
        return self._local.embed_documents(texts)


class _PlannedRetrieval(Retrieval):
    """A retrieval for placeholder replies, which are not embedded or searched for.

    A generated question gets the context of the original question, and all answers have a cosine similarity of 1.
    """

    def fetch(self, cell: Cell, question: Question, request: Retrieve | Embed | ReadSources) -> Any:
        """The contexts, vectors or texts that a method requests for a question."""
        if isinstance(request, Retrieve):
            return super().fetch(cell, question, Retrieve((question.text,))) * len(request.questions)
        if isinstance(request, Embed):
            return np.ones((len(request.questions), 1), np.float32), np.ones((len(request.texts), 1), np.float32)
        return super().fetch(cell, question, request)


class _PlanningEngine(Engine):
    """An engine that never underestimates the number of calls.

    Cells with different retrieval options find different contexts for a generated question, so they do not share the
    calls about it. Cells whose embedders are replaced do not share calls either, for the same reason.
    """

    def _key(self, model: str, prompt: Prompt, cell: Cell) -> str:
        key = super()._key(model, prompt, cell)
        if any(_GENERATED in message.content for message in prompt.messages):
            options = {name: value for name, value in vars(cell.context_options).items() if name != "count_tokens"}
            return key_of("found", key, cell.split, cell.embedder, cell.search, cell.store, options)
        replaced = isinstance(self._prepared.embedders.get(cell.embedder), _StandIn)
        return key_of("found", key, cell.embedder) if replaced else key

    def _take_replies(self, work: Any) -> tuple[Completion | None, ...]:
        # Placeholders are as long as replies may be, so they are only written out to be read.
        return tuple(
            replace(reply, text=_placeholder(reply.text, step, reply.usage.output_tokens))
            if reply is not None and reply.usage is not None and reply.finish_reason == _PLANNED
            else reply
            for (step, _), reply in zip(work.requested, super()._take_replies(work), strict=True)
        )


def _lines(plan: Plan) -> Iterator[str]:
    same = f"; {plan.repeated:,} are equivalent to another one" if plan.repeated else ""
    yield f"{counted(plan.cells, 'cell')} ({counted(plan.combinations, 'combination')}{same})"
    yield f"{counted(plan.questions, 'question')}, {counted(plan.answers, 'answer')}"
    if plan.done:
        yield f"  {plan.done:,} are already in the results file"
    if plan.failed:
        yield f"  {plan.failed:,} failed before"
    for reason, number in plan.failures.items():
        yield f"  {number:,} cannot be generated: {reason}"
    if plan.missing:
        yield from (f"{name}: {why}" for name, why in plan.missing.items())
        yield "calls, tokens and costs are planned once the data is there"
        return
    yield f"{counted(plan.calls, 'model call')}"
    for name, model in plan.models.items():
        money = "" if model.money is None else f", {money_text(model.money)}"
        known = not kind_of(name).own
        tokens = f"{model.input_tokens:,} tokens in, {model.output_tokens:,} out" if known else "tokens unknown"
        yield f"  {name}: {counted(model.calls, 'call')}, {tokens}{money}"
    for name, embedder in plan.embedders.items():
        money = "" if embedder.money is None else f", {money_text(embedder.money)}"
        yield f"  {name}: {embedder.tokens:,} tokens to embed{money}; planned with the packaged embedder instead"
    limits = plan.limits.model_dump(exclude_none=True)
    if limits:
        told = {name: "unknown" if value is None else f"{value:,.6g}" for name, value in vars(plan.spent).items()}
        yield "limits: " + ", ".join(f"{limit:,} {name} ({told[name]} spent)" for name, limit in limits.items())
        if plan.models and limits.keys() != {"calls"}:
            longest = ", ".join(f"{model.longest_reply:,} for {name}" for name, model in plan.models.items())
            yield f"  until a reply is there, the limits reserve the longest one in tokens: {longest}"
    yield from _scores(plan)


def _scores(plan: Plan) -> Iterator[str]:
    """The number of questions that each metric can score; metrics with the same number share a line."""
    by_questions: dict[Scorable, list[str]] = {}
    for metric, (questions, why) in plan.scorable.items():
        by_questions.setdefault(Scorable(questions, why if questions < plan.questions else ""), []).append(metric)
    for (questions, why), metrics in by_questions.items():
        if questions:
            others = f" ({why})" if why else ""
            yield f"{', '.join(metrics)}: {questions:,} of {counted(plan.questions, 'question')} can be scored{others}"
        else:
            yield f"not scored ({why}): {', '.join(metrics)}"
    if plan.unscored is not None:
        yield f"a run would be refused: {plan.unscored}"
