"""What came out, in sentences made from the facts of the record."""

import math
from collections.abc import Mapping
from typing import Any

from mixbin._numbers import readable
from mixbin.reporting.record import Record

ALL, TUNED, RANDOM = "all features", "tuned lasso", "random features"
LASSO, REFITTED, BEST = "lasso", "lasso, refitted", "best subset"
NAMES = (ALL, TUNED, RANDOM, LASSO, REFITTED, BEST)
"""The lines of the comparison; the last is the answer."""
ANY_COUNT = (ALL, TUNED)
"""The lines whose number of features is not the one asked for."""
FEW = 0.8
"""A feature that is kept in fewer than this share of the bootstrap draws is called unsure."""


def proof(facts: Mapping[str, Any]) -> str:
    """How far the features kept can be from the best choice of all, on the rows of the table."""
    kept = features(facts["keep"])
    if facts["keep"] == facts["features"]:
        return "All features are kept, so there was nothing to choose."
    if facts["proved"]:
        return f"Proved the best: no other choice of {kept} fits these rows better."
    return f"No choice of {kept} can fit these rows more than {percent(facts['gap'])} better."


def measured(record: Record) -> str:
    """The error on held-out folds beside those of all features, a tuned lasso and random features."""
    facts = record.facts
    key, name = ("cv_log_loss", "log loss") if facts["loss"] == "logistic" else ("cv_rmse", "error")
    errors = {line.method: readable(line.numbers[key]) for line in record.lines}
    return (
        f"On held-out folds their {name} is {errors[BEST]}, against {errors[ALL]} with all {facts['features']:,} features, "
        f"{errors[TUNED]} with {other_models(facts)[TUNED]} and {errors[RANDOM]} with {facts['keep']:,} at random."
    )


def other_models(facts: Mapping[str, Any]) -> dict[str, str]:
    """The models that need not keep the number of features asked for, in the words of a sentence."""
    return {ALL: "all features", TUNED: f"a tuned lasso on about {features(facts['lasso_features'])}"}


def beside(facts: Mapping[str, Any], name: str) -> str:
    """Whether the features kept predict as well as a model that need not keep as few, as far as the folds can tell."""
    apart, error = facts["beside"][name]
    other = other_models(facts)[name]
    if apart > 2 * error:
        verb = "predict" if name == ALL else "predicts"
        return f"{other[0].upper()}{other[1:]} {verb} better on the held-out folds, by more than two standard errors"
    if apart < -2 * error:
        return f"The features kept predict better than {other} on the held-out folds, by more than two standard errors"
    return f"On the held-out folds, the features kept and {other} predict alike: they differ by less than two standard errors"


def better_ones(facts: Mapping[str, Any]) -> str:
    """Which models predict better than the features kept, for the terminal; empty if none does."""
    better = [it for name, it in other_models(facts).items() if facts["beside"][name][0] > 2 * facts["beside"][name][1]]
    if not better:
        return ""
    said = " and ".join(better)
    verb = "predicts" if better == [other_models(facts)[TUNED]] else "predict"
    return f" {said[0].upper()}{said[1:]} {verb} better there, by more than two standard errors: for prediction alone, use that."


def features(count: int) -> str:
    """A count of features in words."""
    return "1 feature" if count == 1 else f"{count:,} features"


def percent(share: float) -> str:
    """A share as a percentage with two digits, rounded up, because it is a bound."""
    value = 100 * share
    if value <= 0:
        return "0\N{NO-BREAK SPACE}%"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    # Rounding errors must not lift a number that has two digits already.
    return f"{math.ceil(value / unit - 1e-9) * unit:.3g}\N{NO-BREAK SPACE}%"


def cut(name: str, longest: int) -> str:
    """The beginning of a name that is too long."""
    return name if len(name) <= longest else name[: longest - 3] + "..."
