"""The charts of a comparison as SVG: line chart, scatter chart, heat map and histogram.

They are our own few lines because the pictures of a plotting library are large, and neither follow a page into dark
mode nor stay legible on a phone.
"""

from oprag.compare.report.charts.heat import heat_map
from oprag.compare.report.charts.histograms import histogram
from oprag.compare.report.charts.line import Line, LinePoint, line_chart
from oprag.compare.report.charts.palette import CHART_STYLE
from oprag.compare.report.charts.scale import Axis
from oprag.compare.report.charts.scatter import Dot, scatter_chart

__all__ = [
    "CHART_STYLE",
    "Axis",
    "Dot",
    "Line",
    "LinePoint",
    "heat_map",
    "histogram",
    "line_chart",
    "scatter_chart",
]
