"""Figures: each is first a plain object with all that is drawn, then a matplotlib figure (imported when one is drawn)."""

from mixbin.plot.distance import DistanceCurve, distance, distance_curve
from mixbin.plot.evolution import Evolution, evolution
from mixbin.plot.selection import SelectionShares, selection, selection_shares
from mixbin.plot.structure import StructureMap, draw, structure, structure_map
from mixbin.plot.trace import TraceCurves, trace, trace_curves

__all__ = [
    "DistanceCurve",
    "Evolution",
    "SelectionShares",
    "StructureMap",
    "TraceCurves",
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
]
