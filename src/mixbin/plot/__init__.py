"""Figures: each is first a plain object with all that is drawn, then a matplotlib figure (imported when one is drawn)."""

from mixbin.plot.structure import StructureMap, draw, structure, structure_map

__all__ = ["StructureMap", "draw", "structure", "structure_map"]
