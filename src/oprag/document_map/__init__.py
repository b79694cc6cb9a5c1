"""Where in its sources a context lies: what was kept, what was dropped and why, and what was never retrieved."""

from oprag.document_map.cells import Cell, strip
from oprag.document_map.geometry import KEPT, DocumentMap, Mark, Row, map_of
from oprag.document_map.svg import as_svg

__all__ = ["KEPT", "Cell", "DocumentMap", "Mark", "Row", "as_svg", "map_of", "strip"]
