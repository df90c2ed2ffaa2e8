"""The verdict on chosen rows: their model beside that of all rows and of random rows. Made from the record alone."""

from typing import Any

from mixbin.reporting.record import Record
from mixbin.reporting.verdict import MUCH, Verdict, above, apart, percent_text, worse

ALL, RANDOM = "all rows", "random rows"
"""The names of the two references."""


def measured_on(record: Record) -> str | None:
    """The rows that errors are compared on: test rows if there are any, else the candidate rows that were not kept."""
    for part in ("test", "unkept"):
        if any(record.main.numbers.get(f"{part}_{kind}") is not None for kind in ("rmse", "accuracy")):
            return part
    return None


def rows_in_words(record: Record) -> str:
    """The rows that errors are compared on, in words."""
    if measured_on(record) == "test":
        return f"{record.facts['test_rows']:,} test rows"
    return "the candidate rows that were not kept"


def verdict(record: Record) -> Verdict | None:
    """What the rows are worth; None if the record lacks the references or nothing could be measured."""
    everything, random = record.line(ALL), record.line(RANDOM)
    if everything is None or random is None or measured_on(record) is None:
        return None
    if record.facts["budget"] is None and measured_on(record) == "unkept":
        return Verdict(
            f"{record.main.numbers['rows']:,} of {record.facts['rows']:,} rows are kept. How their model does on new rows is not "
            "known: the rows that were dropped are those whose labels are doubted. Give --test."
        )
    if record.main.numbers.get("ratio") is None:
        return _without_ratio(record, random.numbers)
    return _by_ratio(record, random.numbers)


def _by_ratio(record: Record, random: Any) -> Verdict:
    main, facts = record.main.numbers, record.facts
    kept, m, ratio = main["rows"], facts["rows"], main["ratio"]
    said = f"{kept:,} of {m:,} rows train a model whose error on {rows_in_words(record)} is "
    said += _than(apart(ratio), "that of all rows")
    drawn = random.get("ratio")
    if drawn is not None:
        said += f"; {kept:,} random rows: {apart(drawn, random.get('ratio_spread'))}"
    said += "."
    excess = facts.get("excess")
    if excess is not None:
        said += f" No choice of rows could be more than {above(excess / (1 + excess))} better, by the objective that judges."
    red = []
    if drawn is not None and worse(ratio, drawn):
        red.append(f"Worse than random rows: {_more(ratio / drawn)}. Random rows are the better choice here.")
    if worse(ratio, 1.0, MUCH):
        red.append(f"Worse than all rows: {_more(ratio)}. Keep more rows, or all of them.")
    return Verdict(said, tuple(red))


def _without_ratio(record: Record, random: Any) -> Verdict | None:
    """If all rows make no error at all, there is nothing to divide by."""
    part = measured_on(record)
    error = record.main.numbers.get(f"{part}_rmse")
    if error is None:
        wrong = record.main.numbers.get(f"{part}_accuracy")
        error = None if wrong is None else 1 - wrong
    if error is None:
        return None
    said = f"{record.main.numbers['rows']:,} of {record.facts['rows']:,} rows train a model with an error of {error:.3g} on "
    said += f"{rows_in_words(record)}; all rows make no error there."
    return Verdict(said, () if error == 0 else ("Worse than all rows, which make no error. Keep more rows, or all of them.",))


def _than(words: str, what: str) -> str:
    return f"{words} to {what}" if words == "equal" else f"{words} {what}"


def _more(ratio: float) -> str:
    """How much larger an error is."""
    return f"the error is {percent_text(100 * (ratio - 1))} larger" if ratio < float("inf") else "the error is far larger"
