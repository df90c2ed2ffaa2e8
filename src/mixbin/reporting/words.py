"""Explain a certificate in the words of the user's question, without claiming more than it does."""

from math import inf, isfinite, isnan
from typing import NamedTuple

from mixbin._numbers import readable
from mixbin.certificate import Certificate
from mixbin.reporting.blocks import Point
from mixbin.result import Status


class Question(NamedTuple):
    """The words of one kind of question: for its answer, for a single change of the answer, and for the loss that judges it."""

    answer: str
    change: str
    changes: str
    setting: str
    """The name of the continuous setting, which stays fixed while a change is tried."""
    loss: str = "validation loss"
    judge: str = "the validation data"
    """What the loss is computed on."""


ROWS = Question("selection", "exchange of a kept row for one that was left out", "exchanges of two rows", "alpha")
ROWS_BY_ALL = ROWS._replace(loss="penalised loss on all rows", judge="all rows")
"""Where all rows judge, and no validation rows."""
LABELS = Question("selection", "row kept instead of dropped or dropped instead of kept", "changes of one row", "alpha")
"""For questions without a budget, such as which labels to trust."""
GROUPS = Question("grouping", "move of a feature to another group", "moves of a feature", "lam")

ENDINGS = {
    Status.BINARY: "The answer became exactly yes or no by itself: nothing had to be rounded.",
    Status.REPAIRED: "Something had to be rounded: this is the allowed yes-or-no answer nearest to where the search ended.",
    Status.RELAXED: "The answer holds fractions. It weights the candidates, and is not yet a choice of them.",
    Status.INFEASIBLE: "Each entry was rounded on its own, and the answer does not keep to what was asked for.",
    Status.STOPPED: "The search was ended early; the answer keeps to what was asked for.",
}


def evidence(certificate: Certificate | None, status: str, question: Question) -> list[Point]:
    """What is known about the answer, point by point.

    The points say how the search ended, whether one change could improve the answer, how good an answer can be at best, what
    holds it in place, how it compares with the relaxed answer, and what remains open.
    """
    ending = Point(ENDINGS[Status(status)], "Yes or no", "good" if status == Status.BINARY else "open")
    if certificate is None:
        unchecked = f"Only answers that are yes or no and keep to what was asked for are checked; this {question.answer} was not."
        return [ending, Point(unchecked, "Not checked", "open")]
    return [
        ending,
        _one_change(certificate, question),
        *_bound(certificate, question),
        _held(certificate, question),
        _against_relaxed(certificate, question),
        _limits(certificate, question),
    ]


def _one_change(it: Certificate, question: Question) -> Point:
    head = "One change at a time"
    if it.moves_total == 0:
        return Point(f"There is no {question.change}: nothing to compare with.", head, "good")
    as_it_is = f"with {question.setting} as it is"
    of = f"{it.moves_tried:,} of the {it.moves_total:,} possible {question.changes}"
    if it.moves_tried == 0:
        return Point(f"None of the {it.moves_total:,} possible {question.changes} was tried.", head, "open")
    if it.one_move_optimal is False:
        text = f"An {question.change}" if question.change[0] in "aeiou" else f"A {question.change}"
        return Point(
            f"{text} would still lower the {question.loss}, by {readable(-it.best_change, 3)} ({of} were tried).", head, "bad"
        )
    if it.one_move_optimal:
        nearest = (
            f"; the one that comes closest would raise it by {readable(it.best_change, 3)}" if isfinite(it.best_change) else ""
        )
        if it.best_change == 0:
            nearest = "; the one that comes closest would leave it as it is"
        text = f"No single {question.change} would lower the {question.loss}, {as_it_is}. All {it.moves_total:,} were tried"
        return Point(f"{text}{nearest}.", head, "good")
    return Point(f"{of} were tried, {as_it_is}, and none lowers the {question.loss}; the others are not known.", head, "open")


def _bound(it: Certificate, question: Question) -> list[Point]:
    head = "Proven"
    if isnan(it.gap):
        return []
    if it.gap == 0:
        return [Point(f"No {question.answer} has a lower {question.loss}.", head, "good")]
    return [
        Point(f"No {question.answer} can have a {question.loss} that is more than {it.gap_in_percent} % lower.", head, "good")
    ]


def _held(it: Certificate, question: Question) -> Point:
    head = "Held in place"
    if it.epsilon_star == inf:
        text = f"To first order, every small step away from this {question.answer} towards fractions makes things worse"
        return Point(f"{text}, even without a penalty.", head, "good")
    text = (
        f"The penalty on fractions holds this {question.answer} in place, better than all that is near it, wherever its strength "
        f"1/eps is above {1 / it.epsilon_star:.3g} (eps below {it.epsilon_star:.3g})"
        if it.epsilon_star > 0
        else f"No strength of the penalty on fractions was found to hold this {question.answer} in place"
    )
    if isnan(it.epsilon):
        return Point(f"{text}.", head, "open")
    there = f"{text}; the search ended at eps = {it.epsilon:.3g}."
    if it.condition == "consistent":
        return Point(
            f"{there} That agrees with the condition under which theory promises a yes-or-no answer, as far as the path shows.",
            head,
            "good",
        )
    if it.condition == "violated":
        return Point(
            f"{there} Theory promises a yes-or-no answer only for a smaller eps; that condition is sufficient, not necessary.",
            head,
            "good" if it.epsilon < it.epsilon_star else "open",
        )
    return Point(there, head, "open")


def _against_relaxed(it: Certificate, question: Question) -> Point:
    head = "The price of yes or no"
    if isnan(it.relaxed_gap):
        return Point("There is no answer with fractions to compare it with.", head, "open")
    if it.relaxed_gap == 0:
        side = "equals that"
    else:
        side = f"is {readable(abs(it.relaxed_gap), 3)} {'above' if it.relaxed_gap > 0 else 'below'} that"
    text = f"The {question.loss} {side} of the answer with fractions that the search began from: a comparison, not a bound."
    return Point(text, head, "")


def _limits(it: Certificate, question: Question) -> Point:
    proof = (
        f"It is no proof that this is the best {question.answer} of all: answers that differ by two or more changes were not "
        "compared. "
    )
    text = ("" if it.gap == 0 else proof) + (
        f"It is about {question.judge}, on which the answer was chosen: how it does on new data, only test data tell."
    )
    return Point(text, "What this does not say", "")
