"""The six figures from the records of the runs: what each shows, as data, and its drawing.

See docs/maths.md, "Tables and figures of the paper".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbin import plot
from mixbin.plot.distance import distance_figure
from mixbin.plot.evolution import evolution_figure
from mixbin.reproduction import distillation, groups
from mixbin.reproduction.job import Record
from mixbin.reproduction.plan import Plan
from mixbin.reproduction.tables import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

TITLES = {
    1: f"group structures, {groups.FIGURE1_SETTING}: true, relaxed, rounded in two ways, penalize",
    2: f"distance to the binary structures along the run of penalize, {groups.ABLATION_SETTING}",
    3: f"distance to the binary selections along the run of penalize, blog {distillation.ABLATED} %",
    4: f"relaxation with simple rounding, blog {distillation.ABLATED} %",
    5: f"relaxation with top-k rounding, blog {distillation.ABLATED} %",
    6: f"relax and penalize, blog {distillation.ABLATED} %",
}
UNIT = "evaluations of G"
REMARK = "The paper's captions of figures 4 to 6 say music; their budget line (10,479 rows) is blog's."


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, recomputed: its data, and a method that draws them."""

    number: int
    title: str
    data: Any
    """What the figure shows, as objects of ``mixbin.plot``."""
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the figure on the command line."""
        return f"figure{self.number}"

    def draw(self) -> "Drawn":
        """Draw the figure with matplotlib."""
        if self.number == 1:
            return plot.draw(*self.data)
        if isinstance(self.data, plot.DistanceCurve):
            return distance_figure(self.data)
        return evolution_figure(self.data)


def make(name: str, plan: Plan, records: Records) -> Figure:
    """Make the figure with this name from the records of the plan's runs."""
    number = int(name.removeprefix("figure"))
    if number <= 2:
        record = records(plan.runs_of("groups", groups.FIGURE1_SETTING if number == 1 else groups.ABLATION_SETTING)[:1])[0]
        data = _structures(record) if number == 1 else _distance(record["distances"])
        return Figure(number, TITLES[number], data)
    record = records(plan.runs_of("blog", distillation.ABLATED)[:1])[0]
    if number == 3:
        return Figure(3, TITLES[3], _distance(record["penalize_path"]))
    rounding = {4: "simple", 5: "top-k"}.get(number)
    path = record["penalize_path" if rounding is None else "relax_path"]
    return Figure(number, TITLES[number], _evolution(path, rounding, record["budget"]), (REMARK,))


def _structures(record: Record) -> tuple[plot.StructureMap, ...]:
    """The maps of the true structure and of the methods' structures, with features and groups in the order of the true one."""
    found = record["structures"]
    true, relaxed = np.array(found["true"]), np.array(found["relaxed"])
    n_groups = relaxed.shape[1]
    theta = {"true": np.eye(n_groups)[true], "relaxed": relaxed}
    for method in ("simple", "top-1", "penalize"):
        theta[method] = np.array([np.isin(np.arange(n_groups), of_feature) for of_feature in found[method]], dtype=float)
    return tuple(plot.structure_map(matrix, labels=true, title=title) for title, matrix in theta.items())


def _distance(points: Sequence[Record]) -> plot.DistanceCurve:
    return plot.distance_curve(_column(points, "step"), _column(points, "distance"), unit=UNIT)


def _evolution(points: Sequence[Record], rounding: str | None, budget: int) -> plot.Evolution:
    """The data of the five panels. penalize (``rounding`` None) does not round: its "rounded" curves are the curves before."""
    after = points if rounding is None else [point[rounding] for point in points]
    test_after = _column(after, "test")
    return plot.Evolution(
        steps=_column(points, "step"),
        unit=UNIT,
        validation=_column(points, "validation"),
        validation_rounded=_column(after, "validation"),
        n_selected=_column(after, "selected"),
        budget=budget,
        integrality=_column(points, "integrality"),
        test=_column(points, "test"),
        test_rounded=test_after,
        rmse=np.sqrt(2 * test_after),
        rounded=rounding is not None,
    )


def _column(points: Sequence[Record], name: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """One measurement of all points as an array, with NaN where rounding left no row."""
    return np.array([np.nan if point[name] is None else point[name] for point in points], dtype=np.float64)
