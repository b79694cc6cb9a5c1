"""Everything that users can read of an experiment, as facts: named values."""

from __future__ import annotations

import csv
import hashlib
import html
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from benchmarks.recorded_material import experiment_of
from oprag.compare import Experiment, Results, read_data

__all__ = ["Fact", "Place"]

NOT_BETTER = ("inverted_pairs", "long_context_share", "paper_token_usage")
"""Metrics without a best setting."""
PROVIDERS = Path(__file__).parent / "providers"
PYTHON = """\
from pathlib import Path

from benchmarks.recorded_material import experiment_of

experiment = experiment_of(Path(__file__).with_suffix(".toml"))
"""


class Fact(NamedTuple):
    """A named value."""

    experiment: str
    setting: str
    question: str
    what: str
    value: Any

    @property
    def key(self) -> str:
        """The unique key."""
        return " / ".join((self.experiment, self.setting, self.question, self.what))


class Place:
    """A folder in which an experiment is run and read.

    Args:
        folder: The folder.
        name: The name of the experiment.
        axes: The axes that identify its settings, in addition to those of its grid.
        **described: Further content of its file.
    """

    def __init__(self, folder: Path, name: str, *, axes: Iterable[str] = (), **described: Any) -> None:
        self.folder, self.name = folder / name, name
        self.folder.mkdir()
        # The file is data; a Python file beside it puts the functions in place of their names.
        self.content, self.results = self.folder / "experiment.toml", self.folder / "experiment.db"
        self.file = f"{self.folder / 'experiment.py'}:experiment"
        self.axes = list(dict.fromkeys(["data", *axes, *described.get("grid", ()), "seed", "repeat"]))
        if described:
            self.content.write_text(tomli_w.dumps({"name": name, **described}), encoding="utf-8")
            (self.folder / "experiment.py").write_text(PYTHON, encoding="utf-8")

    @property
    def experiment(self) -> Experiment:
        """The experiment."""
        return experiment_of(self.content)

    def fact(self, what: str, value: Any, setting: Mapping[str, Any] | str = "", question: str = "") -> Fact:
        """Return a fact of this experiment, independent of the folder, the time and the load of the machine."""
        told = setting if isinstance(setting, str) else self.told(setting)
        return Fact(self.name, told, question, what, self._steady(what, value))

    def told(self, values: Mapping[str, Any]) -> str:
        """Return a setting as text, by its option values."""
        shown = ((axis, values.get(axis)) for axis in self.axes)
        return ", ".join(f"{axis}={value}" for axis, value in shown if value not in (None, ""))

    def _steady(self, what: str, value: Any) -> Any:
        if re.search(r"seconds|cpu_percent|memory", what) and not isinstance(value, str | list | None):
            return "measured"
        if isinstance(value, str):
            return value.replace(str(self.folder), "FOLDER")
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value

    def oprag(self, *arguments: Any) -> Iterator[Fact]:
        """Run a command; yield its exit code and the values of its JSON output by path."""
        command = [sys.executable, "-c", "from oprag.cli import main; main()", *map(str, arguments)]
        path = os.pathsep.join((str(PROVIDERS), os.environ.get("PYTHONPATH", "")))
        environment = {**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "NO_COLOR": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode not in (0, 1) or (done.returncode and not done.stdout):
            raise RuntimeError(f"{' '.join(command[3:])}: {done.stderr[-2_000:]}")
        what = "plan" if "--plan" in arguments else f"oprag {arguments[0]}"
        yield self.fact(f"{what}: exit code", done.returncode)
        if "--json" in arguments:
            yield from self.placed(what, _as_first_recorded(json.loads(done.stdout)))

    def placed(self, what: str, value: Any) -> Iterator[Fact]:
        """Yield the plain values of a JSON-like value by path; of sentences only the figures."""
        for fact in self._counted((f"{what}: {place}", part) for place, part in _flat(value, self.told)):
            is_sentence = isinstance(fact.value, str) and fact.value.count(" ") > 5
            yield fact._replace(value=_figures(fact.value)) if is_sentence else fact

    def _counted(self, named: Iterable[tuple[str, Any]]) -> Iterator[Fact]:
        """Number facts with equal names."""
        seen: Counter[str] = Counter()
        for name, value in named:
            seen[name] += 1
            yield self.fact(f"{name} {seen[name] if seen[name] > 1 else ''}".rstrip(), value)

    # One method for each way to read results.

    def all_of(
        self, results: Results, *, judged: Iterable[str] = (), exported: Iterable[str] = ("settings", "answers")
    ) -> Iterator[Fact]:
        """Yield rows, answers, exports, and the conclusions about some metrics."""
        yield self.fact("columns", list(results.columns))
        yield self.fact("metrics", list(results.metrics))
        for row in results.rows:
            for column, value in row.items():
                yield self.fact(f"row: {column}", value, row)
        for row in results.answers():
            for column, value in row.items():
                yield self.fact(f"answer: {column}", value, row, row["question_id"])
        frame = results.to_pandas()
        yield self.fact("frame: columns", [f"{name}: {kind}" for name, kind in frame.dtypes.items()])
        for name in exported:
            results.to_csv(self.folder / f"{name}.csv", answers=name == "answers")
            yield from self.exported(name)
        for metric in judged:
            yield from self.judged(results, metric)

    def exported(self, name: str) -> Iterator[Fact]:
        """Yield the content of the tables exported under a name."""
        with (self.folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            yield self.fact(f"{name}.csv: columns", list(reader.fieldnames or ()))
        yield from self._of_table(f"{name}.csv", ({key: _number(text) for key, text in row.items()} for row in rows))

    def _of_table(self, table: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[Fact]:
        for row in rows:
            for column, value in row.items():
                yield self.fact(f"{table}: {column}", value, row, str(row.get("question_id", "")))

    def judged(self, results: Results, metric: str) -> Iterator[Fact]:
        """Yield the conclusions about a metric: differences, the best setting and sweet spots."""
        whole = Results.open(results.path, results.experiment)
        for axis in results.axes:
            for one in whole.differences(axis, [metric]):
                setting = self.told(one.setting.values)
                alone = {name: value for name, value in one.baseline.values.items() if name not in one.setting.values}
                beside = f"{axis}={one.baseline.values[axis]} {self.told(alone)}".rstrip()
                yield from self._judgment(f"difference in {metric} from {beside}", one, setting)
        if metric not in NOT_BETTER:
            for data in dict.fromkeys(row["data"] for row in results.rows if row[metric] is not None):
                yield from self._best(results.where(data=data), metric, f"best {metric} of {data}")
            for axis in sorted({"k", "token_budget", "similarity_threshold"} & set(results.axes)):
                yield from self._curves(results, metric, axis)

    def _best(self, results: Results, metric: str, what: str) -> Iterator[Fact]:
        best = results.best(metric)
        yield self.fact(what, self.told(best.setting.values))
        yield self.fact(f"{what}: shown", best.significant)
        yield self.fact(f"{what}: comparisons", best.comparisons)
        yield self.fact(f"{what}: tied", [self.told(one.values) for one in best.tied])
        yield self.fact(f"{what}: rivals", [self.told(one.baseline.values) for one in best.rivals])
        yield self.fact(f"{what}: figures", _figures(best.describe()))
        for other in best.others:
            yield from self._judgment(f"{what}: above", other, self.told(other.baseline.values))

    def _curves(self, results: Results, metric: str, axis: str) -> Iterator[Fact]:
        for spot in results.curves(axis, metric):
            what, curve = f"curve of {metric} over {axis}", self.told(spot.values)
            yield self.fact(f"{what}: best", spot.sweet_spot and spot.sweet_spot.values[axis], curve)
            yield self.fact(f"{what}: contenders", [point.values[axis] for point in spot.contenders], curve)
            yield self.fact(f"{what}: highest", spot.setting.values[axis], curve)
            yield self.fact(f"{what}: figures", _figures(spot.describe()), curve)

    def _judgment(self, what: str, one: Any, setting: str) -> Iterator[Fact]:
        found = one.difference
        for name in ("n", "mean", "low", "high", "p_value", "unpaired", "units", "differing"):
            yield self.fact(f"{what}: {name}", getattr(found, name), setting)
        yield self.fact(f"{what}: adjusted p", found.adjusted_p, setting)

    def ran(self, report: Any) -> Iterator[Fact]:
        """Yield the outcome of a run, and what it spent."""
        for name in ("outcome", "total", "answered", "failed", "remaining"):
            yield self.fact(f"run: {name}", getattr(report, name))
        for name in ("calls", "tokens", "money"):
            yield self.fact(f"run: spent {name}", getattr(report.spent, name))

    def reported(self, *arguments: Any) -> Iterator[Fact]:
        """Yield the figures in the tables of the report."""
        page = self.folder / "report.html"
        yield from self.oprag("report", self.results, "-o", page, *arguments)
        yield from self._counted(
            (f"report: {section}: {row}: {column}", text)
            for section, row, column, text in _cells(page.read_text(encoding="utf-8"))
            if not re.match(r"\d{4}-\d\d-\d\d", row)  # the date and the versions of a run
        )

    def data_set(self, table: Mapping[str, Any]) -> Iterator[Fact]:
        """Yield the content of a data set; texts as hashes."""
        read = read_data(**table)
        for document, text in read.documents.items():
            whole = text if isinstance(text, str) else "\f".join(text)
            yield self.fact("document", hashlib.sha256(whole.encode()).hexdigest(), document)
        for question in read.questions:
            for field in ("text", "documents", "answers", "choices", "right_choice", "evidence", "about"):
                value = json.loads(json.dumps(getattr(question, field), default=dict))
                yield self.fact(field, value, question=str(question.id))


def _as_first_recorded(told: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of results with the names of the first recording."""
    if "settings" not in told:
        return told
    settings = told.pop("settings")
    told["cells"] = settings
    if "report" in told:
        names = ("values", "measurements")
        told["measured"] = [{name: one[name] for name in names} for one in settings if one["measurements"]]
        del told["cores"]  # of this machine
    for one in settings:
        del one["measurements"]
    told["differences"] = told["differences"] and [_as_pair(one) for one in told["differences"]]
    # Recorded from Python instead.
    for name in ("metric", "deploy", "verdicts", "curves", "checks"):
        told.pop(name, None)
    return told


def _as_pair(one: dict[str, Any]) -> dict[str, Any]:
    setting, baseline, axis = one["setting"], one["baseline"], one["axis"]
    difference = dict(one["difference"])
    adjusted_p, comparisons = difference.pop("adjusted_p"), difference.pop("comparisons")
    return {
        "metric": one["metric"],
        "axis": axis,
        "value": setting[axis],
        "baseline": baseline[axis],
        "values": {name: value for name, value in setting.items() if name in baseline and name != axis},
        "alone": {name: value for name, value in setting.items() if name not in baseline},
        "baseline_alone": {name: value for name, value in baseline.items() if name not in setting},
        "difference": {name: value for name, value in difference.items() if name not in ("alpha", "significant")},
        "adjusted_p": adjusted_p,
        "comparisons": comparisons,
    }


def _cells(page: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the cells of all tables of a page, each with its section, row names and column header."""
    for part in page.split("<h2")[1:]:
        section, _, body = part.partition("</h2>")
        head: list[str] = []
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL):
            cells = [(kind, _plain(text)) for kind, text in re.findall(r"<(t[hd])\b[^>]*>(.*?)</\1>", row, re.DOTALL)]
            names = [text for kind, text in cells if kind == "th"]
            if len(names) == len(cells):
                head = names
                continue
            for number, (kind, text) in enumerate(cells):
                if kind == "td":
                    yield _plain(section.partition(">")[2]), ", ".join(names), head[number], text


def _plain(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text or None


def _figures(text: str) -> list[str]:
    return re.findall(r"[-+]?\d[\d,.]*\d|\d", text)


def _flat(value: Any, told: Callable[[Mapping[str, Any]], str], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values of JSON by path; in a list of settings, the setting's values are part of the path."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in ("values", "alone", "baseline_alone", "setting"):
                yield from _flat(part, told, f"{place}.{name}")
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        for number, part in enumerate(value):
            named = isinstance(part, dict) and "values" in part
            axis = {part["axis"]: part["value"]} if named and "axis" in part and "value" in part else {}
            label = f"{part.get('metric', '')} {told({**part['values'], **axis})}".strip() if named else number
            yield from _flat(part, told, f"{place}[{label}]")
    else:
        yield place, value
