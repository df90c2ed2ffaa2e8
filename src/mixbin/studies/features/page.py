"""The page of ``mixbin features``: the features kept first, then how well they predict, and what to do about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mixbin._numbers import readable
from mixbin.plot import curves
from mixbin.plot.figure import new_figure
from mixbin.reporting.blocks import (
    Block,
    Cell,
    Drawing,
    Grid,
    Listing,
    Page,
    Point,
    Points,
    Prose,
    Section,
    Shell,
    Text,
    isolated,
    isolating,
)
from mixbin.reporting.figures import NARROW, Drawings
from mixbin.reporting.record import Record
from mixbin.reporting.runs import Column, Run, how_read, origin_section, shown
from mixbin.studies.distillation.page import MOST_ROWS, that_fit
from mixbin.studies.features.words import (
    ALL,
    BEST,
    FEW,
    LASSO,
    RANDOM,
    REFITTED,
    TUNED,
    beside,
    cut,
    features,
    measured,
    percent,
    proof,
)

MOST_KEPT = 50
"""Features kept that stand in the first table; all are in the list of all features."""
LONGEST_NAME = 30
"""Letters of a name in the first table, so that the numbers stay in view on a phone; the list of all features has all letters."""
LOOKS = {BEST: curves.ORANGE, LASSO: curves.BLUE, REFITTED: curves.GREEN, RANDOM: curves.PURPLE}


def page(run: Run, columns: Mapping[str, Column], explained: Sequence[str]) -> Page:
    """The page of a run."""
    record, facts = run.record, run.record.facts
    name = Path(facts["train"]).name
    gap = "0\N{NO-BREAK SPACE}%" if facts["proved"] else percent(facts["gap"])
    tiles = {"features kept": f"{facts['keep']:,}", "of all": f"{facts['features']:,}", "gap": gap, **_scores(record)}

    def sections() -> list[Section]:
        asked = record.asked.removeprefix("The task: ")
        return [
            Section("The features kept", _kept(facts)),
            Section("What to do now", [Points(_advice(facts)), *_same_model(run)]),
            Section("How many features does it take?", [_figure(facts)]),
            Section("Beside other choices", _comparison(record, columns, explained)),
            Section("How close to the best choice?", [Prose(_gap(facts))]),
            Section("All features", _all(run)),
            Section(
                "What was asked",
                [Prose([isolating(asked[:1].upper() + asked[1:], repr(facts["target"]), name), *how_read(facts)])],
            ),
            origin_section(record, _settings(facts)),
        ]

    title = Markup("{} of {} features of {}").format(f"{facts['keep']:,}", f"{facts['features']:,}", isolated(name))
    return Page(
        title=title, subtitle=f"{proof(facts)} {measured(record)}", kind="Feature selection", sections=sections, tiles=tiles
    )


def _scores(record: Record) -> dict[str, str]:
    """The score of the features kept, on the rows that judge best: test rows, or else held-out folds."""
    heads = {"test_r2": "test R\N{SUPERSCRIPT TWO}", "test_accuracy": "test accuracy"}
    heads |= {"cv_r2": "held-out R\N{SUPERSCRIPT TWO}", "cv_accuracy": "held-out accuracy"}
    found = {head: record.main.numbers.get(key) for key, head in heads.items()}
    return dict([(head, f"{value:.3g}") for head, value in found.items() if value is not None][:1])


def _kept(facts: Mapping[str, Any]) -> list[Block]:
    stability, few = facts["stability_draws"] is not None, facts["kept"][:MOST_KEPT]
    rows = [
        [
            Cell(isolated(cut(it["feature"], LONGEST_NAME))),
            Cell(readable(it["coefficient"])),
            Cell(readable(it["effect"])),
            *([Cell(f"{100 * it['stability']:.0f}\N{NO-BREAK SPACE}%")] if stability else []),
        ]
        for it in few
    ]
    if facts["loss"] == "logistic":
        what = Markup("the log odds of class {}").format(isolated(facts["classes"][1]))
    else:
        what = isolated(facts["target"])
    note = Markup(
        "The coefficient is what one unit of the feature adds to {}, the effect what one standard deviation adds; the "
        "largest effects come first."
    ).format(what)
    if stability:
        note += Markup(
            " Stability is the share of {} bootstrap draws of the rows in which the feature is kept, too. Of two columns that "
            "say the same, now one is kept and now the other, so that both have a low number."
        ).format(facts["stability_draws"])
    if len(few) < facts["keep"]:
        note += Markup(' The first {} of {} stand here; all are in <a href="features.csv">features.csv</a>.').format(
            len(few), f"{facts['keep']:,}"
        )
    return [
        Grid(["feature", "coefficient", "effect", *(["stability"] if stability else [])], rows),
        Prose([note], muted=True),
    ]


def _advice(facts: Mapping[str, Any]) -> list[Point]:
    keep, counts, errors = facts["keep"], facts["counts"], facts["curves"][BEST]
    lowest = counts[int(np.argmin(errors))]
    points = [Point("selected.csv has these features and the target; the call below trains the same model.", "Use them")]
    said = f"Of the counts tried, {lowest:,} has the lowest error on held-out folds"
    said += "." if lowest == keep else f" ({readable(min(errors))}; {keep:,} has {readable(errors[counts.index(keep)])})."
    if facts["enough"] < lowest:
        said += f" {facts['enough']:,} is within one standard error of that: --keep {facts['enough']} may do."
    elif lowest != keep:
        said += f" Try --keep {lowest}."
    points.append(Point(said, "How many"))
    for name, head, then in ((ALL, "Few or all", "keep them all"), (TUNED, "Or a lasso", "use that")):
        apart, error = facts["beside"][name]
        points.append(Point(beside(facts, name) + (f": for prediction alone, {then}." if apart > 2 * error else "."), head))
    if facts["stability_draws"] is None:
        points.append(Point("Add --stability to see which features are kept on other rows, too.", "Stability"))
    elif unsure := sum(it["stability"] < FEW for it in facts["kept"]):
        some = "1 feature is" if unsure == 1 else f"{unsure:,} features are"
        points.append(
            Point(
                f"{some} kept in less than {100 * FEW:.0f}\N{NO-BREAK SPACE}% of the draws: others may serve as well, so do not "
                "read much into which of them it is.",
                "Stability",
            )
        )
    else:
        points.append(Point("Each of the features is kept in most draws of the rows, too.", "Stability"))
    points.append(Point("Coefficients say what predicts, not what causes.", "Causes"))
    return points


def _same_model(run: Run) -> list[Block]:
    """The scikit-learn call that trains the same model."""
    return [Shell(str(run.json("model.json")["scikit_learn"]))]


def _figure(facts: Mapping[str, Any]) -> Drawing:
    """Error on held-out folds against the number of features."""
    from matplotlib.ticker import MaxNLocator

    counts, figure = np.array(facts["counts"], dtype=np.float64), new_figure(NARROW, 3.4)
    axes = figure.subplots()
    # The best subset last, above the others, and first in the legend.
    for name, look in reversed(LOOKS.items()):
        curves.line(axes, counts, np.array(facts["curves"][name], dtype=np.float64), look, name)
    curves.limit(axes, facts["error_of_all"], "all")
    axes.axvline(facts["keep"], color=curves.GREY.colour, linestyle=":", linewidth=1.0, zorder=0)
    error = "log loss" if facts["loss"] == "logistic" else "error"
    axes.set(xlabel="features", ylabel=f"{error} on held-out folds")
    curves.tidy(axes)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper left", ncols=2, frameon=False, fontsize=curves.SMALL_FONT)
    caption = (
        "Error on held-out folds against the number of features: the best subset, the lasso with its own coefficients, a ridge "
        f"regression on the lasso's features, and random features. Dotted: all {features(facts['features'])}, and the "
        f"{facts['keep']:,} asked for."
    )
    return Drawings().curves(figure, caption)


def _comparison(record: Record, columns: Mapping[str, Column], explained: Sequence[str]) -> list[Block]:
    kept = shown(columns, record)
    rows = [
        [Cell(line.method), *(Cell(it.text(line.numbers.get(key), "none")) for key, it in kept.items())] for line in record.lines
    ]
    heads = ["model on", *(it.head for it in kept.values())]
    how = Prose([" ".join(explained)], muted=True)
    unit = "log loss" if record.facts["loss"] == "logistic" else "mean squared error"
    others = dict(zip(record.facts["beside"], ("the model on all features", "the tuned lasso"), strict=True))
    said = " ".join(
        f"The {unit} of the features kept on held-out folds is {readable(abs(apart), 3)} "
        f"{'higher' if apart > 0 else 'lower'} than that of {others[name]} (standard error {readable(error, 2)})."
        for name, (apart, error) in record.facts["beside"].items()
    )
    return [Prose([said]), Grid(heads, rows, strong=len(rows) - 1), how]


def _gap(facts: Mapping[str, Any]) -> list[str]:
    """What the gap says and what it does not."""
    value = readable(facts["value"])
    said = f"{proof(facts)} What is compared is the training loss with its ridge penalty: {value} for the features kept"
    if facts["proved"]:
        return [said + ".", "That is about the rows of the table; how well the features predict others, only held-out rows tell."]
    more = (
        "Without --time-limit, --prove goes on until it is closed." if facts["prove"] else "--prove goes on until it is closed."
    )
    bound = f", and no choice is below {readable(facts['lower_bound'])}."
    return [said + bound, f"A gap need not mean that there is a better choice: the bound may be loose. {more}"]


def _all(run: Run) -> list[Block]:
    columns, rows = run.table("features.csv", MOST_ROWS)
    few, total = that_fit(rows), run.record.facts["features"]
    # Numbers as they are: the page sorts by them and shows as many digits as people read.
    listed = [[row[0], "yes" if row[1] == "True" else "no", row[2], *(f"{float(x):.12g}" for x in row[3:])] for row in few]
    note: Text = "Rank 1 is kept; the others follow by how little the loss would rise if one of them replaced a feature kept."
    if len(few) < total:
        note += Markup(' The first {} of {} stand here; all are in <a href="features.csv">features.csv</a>.').format(
            f"{len(few):,}", f"{total:,}"
        )
    return [Listing(columns, listed, "features.csv", "features", note=note)]


def _settings(facts: Mapping[str, Any]) -> dict[str, Text]:
    test, limit = facts["test_rows"], facts["time_limit"]
    return {
        "table": isolated(facts["train"]),
        "target": isolated(facts["target"]),
        "rows": f"{facts['rows']:,}",
        "test rows": "none" if test is None else f"{test:,}",
        "loss": facts["loss"],
        "ridge weight": f"{facts['gamma']:.6g}, by cross-validation",
        "proof": ("asked for" + ("" if limit is None else f", for {limit:g} seconds at most"))
        if facts["prove"]
        else "not asked for",
    }
