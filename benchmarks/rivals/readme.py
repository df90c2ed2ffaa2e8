"""The README's table of results, made from the records in docs/results.

python -m benchmarks.rivals.readme            # stop if README.md says something else
python -m benchmarks.rivals.readme --write    # write the table into README.md
"""

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.rivals import compare, runner
from benchmarks.rivals.families import FAMILIES
from benchmarks.rivals.page import normalised

from mixbin._files import replacing

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
BEGIN, END = "<!-- results: python -m benchmarks.rivals.readme --write -->\n", "<!-- end of results -->\n"
PLACE = re.compile(re.escape(BEGIN) + "(.*?)" + re.escape(END), re.S)


@dataclass(frozen=True)
class Line:
    """One question of the table: where its records are, and what people take otherwise."""

    question: str
    family: str
    key: str
    measured: str
    usual: str
    usual_words: str
    relative_to: str | None = None
    """A method by whose value all others of a table are divided, where the family names none."""


OVER_ALL = "divided by that of all rows"
LINES = (
    Line("5 % of the rows (1 % of the largest table)", "rows", "error", f"error on new rows {OVER_ALL}", "random", "random rows"),
    Line("the same rows, to train a random forest", "rows", "forest", "the same", "random", "random rows"),
    Line("which labels are wrong", "labels", "f1", "F1 of the rows flagged", "cleanlab RF", "cleanlab with a forest"),
    Line(
        *("10 features", "features", "error", "error on new rows, divided by that of `LassoCV` with any number of features"),
        *("abess", "abess", "LassoCV (any number)"),
    ),
)


def tables(line: Line) -> Iterator[tuple[dict[str, float], list[compare.Finding]]]:
    """For each table of a question: the mean of each method over its seeds, and who is ahead."""
    family = FAMILIES[line.family]
    records = normalised(family, runner.read(RESULTS / "rivals" / f"{line.family}.json")["records"])
    found = [it for it in compare.findings(family, records) if it.quantity.key == line.key]
    for (table, budget), methods in compare.good(records).items():
        if table.startswith("planted"):  # made such that few features are right: real tables alone say what that is worth
            continue
        values = {
            method: compare.mean([it["measures"][line.key] for it in of.values() if line.key in it["measures"]])
            for method, of in methods.items()
            if any(line.key in it["measures"] for it in of.values())
        }
        # Without the reference that all are divided by, the figures of a table have another unit.
        if family.relative_to is None or family.relative_to in values:
            unit = values[line.relative_to] if line.relative_to else 1.0
            yield (
                {method: value / unit for method, value in values.items()},
                [it for it in found if (it.table, it.budget) == (table, budget)],
            )


def row(line: Line) -> str:
    """A question as a row of the table."""
    every = list(tables(line))
    ours, usual = (median(values[name] for values, _ in every) for name in (FAMILIES[line.family].ours, line.usual))
    better = sum(any(it.verdict == "wins" for it in its) for _, its in every)
    alone = sum(all(it.verdict == "loses" for it in its) for _, its in every)
    cells = (
        line.question,
        line.measured,
        f"{ours:.3f}",
        f"{usual:.3f} {line.usual_words}",
        f"{better} of {len(every)}",
        f"{alone} of {len(every)}",
    )
    return "| " + " | ".join(cells) + " |"


def paper() -> str:
    """The published problem, ours beside the published figure."""
    results = json.loads((RESULTS / "default" / "results.json").read_text(encoding="utf-8"))
    (table,) = (it for it in results["tables"] if it["number"] == 3)
    labels = {tuple(it["labels"]): it["entries"] for it in table["rows"]}
    entry = next(entries[0] for names, entries in labels.items() if {"blog", "10 %", "penalize"} <= set(names))
    ours, published = compare.mean(entry["values"]), entry["published"][0]
    what = "10 % of the rows of BlogFeedback, judged by validation rows"
    return f"| {what} | validation loss | {ours:.2f} | {published:.2f} published | | |"


def made() -> str:
    """The whole table."""
    lines = [
        "| what to keep | measured (median of the tables) | mixbin | what people take | tables in which a rival is better "
        "| tables in which mixbin beats all |",
        "|---|---|---:|---:|---:|---:|",
        *(row(line) for line in LINES),
        paper(),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare or write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals.readme", description="The README's table of results.")
    parser.add_argument("--write", action="store_true", help="write the table into README.md")
    write = parser.parse_args().write
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    changed = PLACE.sub(lambda _: BEGIN + made() + END, text)
    if write:
        with replacing(readme) as out:
            out.write(changed.encode())
    elif changed != text:
        raise SystemExit("README.md differs from docs/results; run: python -m benchmarks.rivals.readme --write")
    print(made(), end="")


if __name__ == "__main__":
    main()
