"""docs/rivals.md and its figures, made from the records alone: what rivals win comes first."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.rivals import compare, full_length, runner
from benchmarks.rivals.cells import Family, Quantity, Record
from benchmarks.rivals.compare import Finding, mean
from benchmarks.rivals.families import FAMILIES
from benchmarks.rivals.figure import quality_against_time

from mixbin._files import replacing

FASTER = 2.0
"""A rival that ties and takes this many times less time is named."""
MOST_NAMED = 3
"""As many rivals of a table are named in a sentence; the tables have all of them."""


def normalised(family: Family, records: Iterable[Record]) -> list[Record]:
    """The records with the quantities divided by those of the reference in the same cell, where it has them."""
    records = list(records)
    base = {(it["table"], it["budget"], it["seed"]): it for it in records if it["method"] == family.relative_to}
    out = []
    for record in records:
        reference = base.get((record["table"], record["budget"], record["seed"]))
        if record["state"] == "ok" and reference is not None and reference["state"] == "ok":
            measures = dict(record["measures"])
            for quantity in family.quantities:
                if quantity.key in measures and reference["measures"].get(quantity.key):
                    measures[quantity.key] /= reference["measures"][quantity.key]
            record = record | {"measures": measures}
        out.append(record)
    return out


def number(value: float) -> str:
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4f}" if 0.01 <= abs(value) < 10 else f"{value + 0.0:.4g}"


def seconds(value: float) -> str:
    return "< 0.01" if value < 0.005 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def against(it: Finding) -> str:
    spread = f" ± {number(it.error)}" if it.seeds > 1 else ""
    return f"{it.rival} {number(it.theirs)} against {number(it.ours)} (difference {number(-it.ahead)}{spread})"


def named(its: Sequence[Finding]) -> str:
    best = sorted(its, key=lambda it: it.ahead)
    more = f", and {len(best) - MOST_NAMED} more" if len(best) > MOST_NAMED else ""
    return "; ".join(against(it) for it in best[:MOST_NAMED]) + more


def place(it: Finding) -> str:
    return f"{it.table}, {it.budget}" if it.budget else it.table


def by_table(its: Iterable[Finding]) -> dict[str, list[Finding]]:
    out: dict[str, list[Finding]] = {}
    for it in its:
        out.setdefault(place(it), []).append(it)
    return out


def reason(it: Finding, first: Finding | None) -> str:
    """Whether the search or the judge is behind a rival's win: who has the lower value of what mixbin minimises.

    ``first`` is the same pair in the family's first quantity, if that is another one: what mixbin was asked for.
    """
    if first is not None:
        word = {"wins": "behind", "ties": "level", "loses": "ahead"}[first.verdict]
        values = f"{number(first.ours)} against {number(first.theirs)}"
        return f" In {first.quantity.title}, what was asked for, mixbin is {word}: {values}."
    if it.our_judged is None or it.their_judged is None:
        return ""
    values = f"{number(it.our_judged)} against {number(it.their_judged)}"
    if it.our_judged <= it.their_judged * (1 + 1e-9):
        return f" By the judge, which mixbin minimises, mixbin is ahead ({values}): the judge and the new rows differ."
    return f" The rival is ahead by the judge, too ({values}): the search of mixbin missed it."


def wins(family: Family, quantity: Quantity, every: Sequence[Finding]) -> list[str]:
    """The sentences about one quantity, if any rival is better somewhere."""
    tables = by_table(it for it in every if it.quantity is quantity)
    main = {(place(it), it.rival): it for it in every if it.quantity is family.quantities[0] and it.quantity is not quantity}
    lost = {name: [it for it in its if it.verdict == "wins"] for name, its in tables.items()}
    lost = {name: its for name, its in lost.items() if its}
    if not lost:
        return []
    lines = [f"- **{family.title}: {quantity.title}.** A rival is better in {len(lost)} of {len(tables)} tables:"]
    for name, its in lost.items():
        first = min(its, key=lambda it: it.ahead)
        lines.append(f"    - {name}: {named(its)}.{reason(first, main.get((name, first.rival)))}")
    return lines


def ties(family: Family, quantity: Quantity, found: Sequence[Finding]) -> list[str]:
    """The sentences about ties in one quantity."""
    lines = []
    for name, its in by_table(found).items():
        level = [it for it in its if it.verdict == "ties"]
        if not level:
            continue
        quicker = [it for it in level if it.their_seconds * FASTER < it.our_seconds]
        more = (
            f" Quicker than mixbin ({seconds(level[0].our_seconds)} s) is "
            + ", ".join(f"{it.rival} ({seconds(it.their_seconds)} s)" for it in quicker)
            + "."
            if quicker
            else ""
        )
        lines.append(f"    - {name}: {named(level)}.{more}")
    return [f"- **{family.title}: {quantity.title}.** Within one standard error:", *lines] if lines else []


def ahead(family: Family, quantity: Quantity, found: Sequence[Finding]) -> list[str]:
    """How often mixbin is alone in front; nothing if it never is."""
    tables = by_table(found)
    alone = [name for name, its in tables.items() if all(it.verdict == "loses" for it in its)]
    often = f"mixbin is better than every rival in {len(alone)} of {len(tables)} tables ({'; '.join(alone)})."
    return [f"- **{family.title}: {quantity.title}.** {often}"] if alone else []


def in_short(found: Mapping[str, Sequence[Finding]]) -> list[str]:
    """One line per family and quantity: in how many tables a rival is better, level or behind; most wins of rivals first."""
    lines = []
    for name, its in found.items():
        for quantity in FAMILIES[name].quantities:
            tables = by_table(it for it in its if it.quantity is quantity)
            if not tables:
                continue
            best = [it for every in tables.values() for it in every if it.verdict == "wins"]
            won = sum(any(it.verdict == "wins" for it in every) for every in tables.values())
            alone = sum(all(it.verdict == "loses" for it in every) for every in tables.values())
            who = ", ".join(dict.fromkeys(it.rival for it in sorted(best, key=lambda it: it.ahead)[:MOST_NAMED]))
            counts = f"{won} | {len(tables) - won - alone} | {alone} | {who or '–'} |"
            lines.append((-won / len(tables), f"| {FAMILIES[name].title}: {quantity.title} | {counts}"))
    head = ["| what is compared | rival better | level | mixbin ahead | by whom, at most three |", "|---|---:|---:|---:|---|"]
    return [*head, *(line for _, line in sorted(lines, key=lambda pair: pair[0]))]


def table(family: Family, records: Sequence[Record], found: Sequence[Finding]) -> list[str]:
    """A Markdown table of means per method for each table and budget; marks say where a rival is better or level."""
    marks = {
        (it.table, it.budget, it.rival, it.quantity.key): {"wins": " ▲", "ties": " =", "loses": ""}[it.verdict] for it in found
    }
    lines = []
    for (name, budget), methods in compare.good(records).items():
        shown = [q for q in family.quantities if any(q.key in it["measures"] for of in methods.values() for it in of.values())]
        lines += ["", f"#### {name}{', ' + budget if budget else ''}", ""]
        lines.append("| method | " + " | ".join(q.title for q in shown) + " | seconds | memory (MB) | seeds |")
        lines.append("|---|" + "---:|" * (len(shown) + 3))
        sign = 1 if family.quantities[0].less else -1
        order = sorted(
            methods.items(), key=lambda it: sign * _mean(it[1].values(), family.quantities[0].key, sign * float("inf"))
        )
        for method, of in order:
            values = [
                number(_mean(of.values(), q.key, float("nan"))) + marks.get((name, budget, method, q.key), "")
                if any(q.key in it["measures"] for it in of.values())
                else "–"
                for q in shown
            ]
            bold = f"**{method}**" if method == family.ours else method
            spent = mean([it["seconds"] for it in of.values()])
            peak = mean([it["memory"] for it in of.values()])
            lines.append(f"| {bold} | " + " | ".join(values) + f" | {seconds(spent)} | {peak:.0f} | {len(of)} |")
    return lines


def _mean(records: Iterable[Record], key: str, otherwise: float) -> float:
    values = [it["measures"][key] for it in records if key in it["measures"]]
    return mean(values) if values else otherwise


def missing(records: Sequence[Record]) -> list[str]:
    """What has no figures, and why."""
    lines = []
    for (method, why), its in compare.absent(records).items():
        where = sorted({f"{it['table']}, {it['budget']}" if it["budget"] else it["table"] for it in its})
        lines.append(f"- {method}: {why} ({'; '.join(where)}).")
    return ["", "No figures:", "", *lines] if lines else []


def origin(runs: Sequence[Record]) -> list[str]:
    lines = []
    for run in runs:
        size, packages = run["machine"], ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        lines.append(
            f"- `{run['command']}`, {run['date']}: {size['cores']} cores, {size['memory_gb']} GB, {size['system']}, "
            f"{size['blas_threads']} BLAS thread(s); {packages}."
        )
    return lines


def write_page(page: Path, folder: Path) -> None:
    """Write the page and one figure per family beside it."""
    files = {name: runner.read(folder / f"{name}.json") for name in FAMILIES if (folder / f"{name}.json").is_file()}
    records = {name: normalised(FAMILIES[name], file["records"]) for name, file in files.items()}
    found = {name: compare.findings(FAMILIES[name], its) for name, its in records.items()}
    figures = page.parent / "results" / "rivals"
    text = _text(files, records, found, figures, page) + full_length.section(folder)
    page.parent.mkdir(parents=True, exist_ok=True)
    with replacing(page) as out:
        out.write(("\n".join(text) + "\n").encode())


def _text(files, records, found, figures: Path, page: Path) -> list[str]:
    parts: dict[str, list[str]] = {"wins": [], "ties": [], "ahead": []}
    for name, its in found.items():
        family = FAMILIES[name]
        for quantity in family.quantities:
            some = [it for it in its if it.quantity is quantity]
            if some:
                parts["wins"] += wins(family, quantity, its)
                parts["ties"] += ties(family, quantity, some)
                parts["ahead"] += ahead(family, quantity, some)
        if any(it.verdict == "wins" for it in its):
            parts["wins"] += [f"- {family.title}, why: {why}" for why in family.reasons(records[name])]
    cells = sum(len(its) for its in records.values())
    total = sum(it.get("seconds", it["limit"] if it["state"] == "limit" else 0.0) for its in records.values() for it in its)
    lines = [
        "# mixbin beside what you would pick instead",
        "",
        "Made by `python -m benchmarks.rivals` from its records in docs/results/rivals; every sentence and figure follows from "
        "them. "
        f"{cells:,} cells, {total / 60:.0f} minutes of processor time for their answers. A difference counts "
        "if it exceeds its standard error, over the seeds that both methods have; with one seed there is none, and any "
        "difference counts. Seconds are processor time of one thread; memory is the peak above that of the data.",
        "",
        "Tables in which a rival is better than mixbin, level with it, or behind:",
        "",
        *in_short(found),
        "",
        "## Where a rival is better",
        "",
        *(parts["wins"] or ["Nowhere in these tables."]),
        "",
        "## Where mixbin has no advantage",
        "",
        *(parts["ties"] or ["Nowhere in these tables."]),
        "",
        "## Where mixbin is ahead",
        "",
        *(parts["ahead"] or ["Nowhere in these tables."]),
    ]
    for name, its in records.items():
        family = FAMILIES[name]
        figures.mkdir(parents=True, exist_ok=True)
        drawn = quality_against_time(family, its, figures / f"{name}.svg")
        lines += ["", f"## {family.title}", "", family.words]
        remarks = family.remarks(its)
        lines += ["", *[f"- {remark}" for remark in remarks]] if remarks else []
        lines += ["", f"![Quality against time](results/rivals/{name}.svg)"] if drawn else []
        lines += ["", "▲: the rival is better; =: within one standard error.", *table(family, its, found[name])]
        lines += missing(its)
        lines += ["", "Run:", "", *origin(files[name]["runs"])]
    return lines
