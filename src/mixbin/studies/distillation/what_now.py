"""The last part of a page about chosen rows: how to use them, for what they serve, and for what they do not."""

from markupsafe import Markup

from mixbin.reporting.blocks import Block, Code, Point, Points, Prose, Section
from mixbin.reporting.runs import Run

KERNEL = """\
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import mixbin as mb

model = make_pipeline(
    StandardScaler(),
    Nystroem(n_components=200, random_state=0),
    mb.DistillationRegressor(budget=0.1, standardize=False, random_state=0),
).fit(X, y)
rows = model[-1].support_  # which rows of X the kernel model was trained on"""
"""A kernel model on chosen rows; docs/how-few-rows.md has its figures."""


def sections(run: Run) -> list[Section]:
    """The section with what to do now."""
    model, record = run.json("model.json"), run.record
    if record.kind == "classification":
        return [Section("What now?", [Points(_classes(run))])]
    blocks: list[Block] = []
    if "how" in model.get("scikit_learn", {}) and isinstance(model.get("target"), str):
        blocks = [Prose(["Train on the rows, here with scikit-learn:"]), Code(_training(run, model))]
    points = [
        Point(
            "The rows serve the model that chose them, a ridge regression on these columns. For another model, such as a random "
            "forest, they can be worse than random rows; compare before you use them.",
            "For this model",
        ),
        Point("Every row needed its target to be judged, so this does not say which rows to label.", "Not for labelling"),
        Point("Rows can be chosen for a kernel model too, by its features; the figures are in docs/how-few-rows.md:", "Kernels"),
    ]
    return [Section("What now?", [*blocks, Points(points), Code(KERNEL)])]


def _training(run: Run, model: dict[str, object]) -> str:
    """The ridge regression on the kept rows, as code."""
    folder = (run.folder / "selected").is_dir()
    weighted = run.result.theta.dtype.kind == "f"
    read = 'pd.read_parquet("selected")' if folder else 'pd.read_csv("selected.csv")'
    alpha = model["scikit_learn"]["alpha"]  # type: ignore[index]
    weight = ', sample_weight=rows["weight"]' if weighted else ""
    scaled = "scales" in model
    lines = [
        "import json",
        "import pandas as pd",
        "from sklearn.linear_model import Ridge",
        "",
        'model = json.load(open("model.json"))',
        f"rows = {read}",
        'X, y = rows[list(model["coef"])], rows[model["target"]]',
        *(['scales = pd.Series(model["scales"])  # of all candidate rows'] if scaled else []),
        f"ridge = Ridge(alpha={alpha!r}).fit(X{' / scales' if scaled else ''}, y{weight})",
        f'ridge.predict(new[list(model["coef"])]{" / scales" if scaled else ""})  # new: rows to predict',
    ]
    return "\n".join(lines)


def _classes(run: Run) -> list[Point]:
    return [
        Point(
            Markup(
                'The rows are in <a href="selected.csv">selected.csv</a>, the others in <a href="dropped.csv">dropped.csv</a>, '
                'and the coefficients in <a href="model.json">model.json</a>: a row belongs to the class with the largest '
                "intercept + coef x."
            ),
            "Use them",
        ),
        Point(
            "The rows serve the model that chose them, a logistic regression on these columns, and not a forest or a network.",
            "For this model",
        ),
        Point(
            "Every row needed its class to be judged, so this does not say which rows to label. To find wrong labels, use mixbin "
            "labels.",
            "Not for labelling",
        ),
    ]
