"""Compare methods, orders and thresholds on the same questions; each answer is generated once."""

from typing import TYPE_CHECKING

from oprag._internal.lazy import loader

__all__ = [
    "Curve",
    "DataSet",
    "EmbedderSpec",
    "Evidence",
    "Experiment",
    "Judge",
    "Limits",
    "ModelSpec",
    "Pipeline",
    "Plan",
    "Price",
    "Question",
    "Results",
    "RunReport",
    "ScoredAnswer",
    "SettingDifference",
    "SettingSummary",
    "compare",
    "make_plan",
    "metric",
    "read_data",
    "run",
    "sweep_experiment",
    "write_report",
]

# No submodule may share a name with these: importing it would replace the public name.
_PLACES = {
    "Curve": "oprag.compare.analysis.best",
    "DataSet": "oprag.compare.data.data_set",
    "EmbedderSpec": "oprag.compare.providers.specs",
    "Evidence": "oprag.compare.data.data_set",
    "Experiment": "oprag.compare.experiment",
    "Judge": "oprag.compare.metrics.judge",
    "Limits": "oprag.compare.spending",
    "ModelSpec": "oprag.compare.providers.specs",
    "Pipeline": "oprag.compare.experiment_methods",
    "Plan": "oprag.compare.plan",
    "Price": "oprag.compare.spending",
    "Question": "oprag.compare.data.data_set",
    "Results": "oprag.compare.results",
    "RunReport": "oprag.compare.running.run",
    "ScoredAnswer": "oprag.compare.metrics.registry",
    "SettingDifference": "oprag.compare.analysis.differences",
    "SettingSummary": "oprag.compare.analysis.summary",
    "compare": "oprag.compare.results",
    "make_plan": "oprag.compare.plan",
    "metric": "oprag.compare.metrics.registry",
    "read_data": "oprag.compare.data.read",
    "run": "oprag.compare.running.run",
    "sweep_experiment": "oprag.compare.sweep",
    "write_report": "oprag.compare.report.write",
}

if TYPE_CHECKING:
    from oprag.compare.analysis.best import Curve
    from oprag.compare.analysis.differences import SettingDifference
    from oprag.compare.analysis.summary import SettingSummary
    from oprag.compare.data.data_set import DataSet, Evidence, Question
    from oprag.compare.data.read import read_data
    from oprag.compare.experiment import Experiment
    from oprag.compare.experiment_methods import Pipeline
    from oprag.compare.metrics.judge import Judge
    from oprag.compare.metrics.registry import ScoredAnswer, metric
    from oprag.compare.plan import Plan, make_plan
    from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
    from oprag.compare.report.write import write_report
    from oprag.compare.results import Results, compare
    from oprag.compare.running.run import RunReport, run
    from oprag.compare.spending import Limits, Price
    from oprag.compare.sweep import sweep_experiment

__getattr__ = loader(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
