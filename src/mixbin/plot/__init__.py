"""Figures. Each is first computed as a plain object with everything that it shows, then drawn by matplotlib.

Matplotlib is imported when the first figure is drawn.
"""

from mixbin.plot.budgets import budget_curve
from mixbin.plot.distance import DistanceCurve, distance, distance_curve
from mixbin.plot.evolution import Evolution, evolution
from mixbin.plot.rows import Bar, compared, where_kept
from mixbin.plot.selection import SelectionShares, selection, selection_shares
from mixbin.plot.structure import StructureMap, draw, structure, structure_map
from mixbin.plot.trace import TraceCurves, trace, trace_curves

__all__ = [
    "Bar",
    "DistanceCurve",
    "Evolution",
    "SelectionShares",
    "StructureMap",
    "TraceCurves",
    "budget_curve",
    "compared",
    "distance",
    "distance_curve",
    "draw",
    "evolution",
    "selection",
    "selection_shares",
    "structure",
    "structure_map",
    "trace",
    "trace_curves",
    "where_kept",
]
