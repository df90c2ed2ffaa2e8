"""The certificate in words: each sentence follows from the object, and none says more."""

import math

import pytest

import mixbin as mb
from mixbin.reporting.words import GROUPS, ROWS, evidence


def said(certificate, status="BINARY", question=ROWS):
    return {point.head: (point.mark, str(point.text)) for point in evidence(certificate, status, question)}


def certificate(**entries):
    return mb.Certificate(**({"epsilon_star": 0.5, "moves_tried": 100, "moves_total": 100, "best_change": 0.25} | entries))


def test_all_changes_tried_and_none_better():
    mark, text = said(certificate())["One change at a time"]
    assert mark == "good"
    assert text == (
        "No single exchange of a kept row for one that was left out would lower the validation loss, with alpha as it is. "
        "All 100 were tried; the one that comes closest would raise it by 0.25."
    )
    assert "leave it as it is" in said(certificate(best_change=0.0))["One change at a time"][1]


def test_in_the_words_of_the_question():
    text = said(certificate(), question=GROUPS)["One change at a time"][1]
    assert text.startswith("No single move of a feature to another group would lower the validation loss, with lam as it is.")


@pytest.mark.parametrize(
    ("entries", "mark", "words"),
    [
        ({"best_change": -0.125}, "bad", "would still lower the validation loss, by 0.125 (100 of the 100 possible"),
        (
            {"moves_tried": 40},
            "open",
            "40 of the 100 possible exchanges of two rows were tried, with alpha as it is, and none lowers",
        ),
        ({"moves_tried": 40}, "open", "the others are not known"),
        ({"moves_tried": 0, "best_change": math.nan}, "open", "None of the 100 possible exchanges of two rows was tried."),
        ({"moves_tried": 0, "moves_total": 0, "best_change": math.nan}, "good", "nothing to compare with"),
    ],
)
def test_what_was_not_tried_is_not_claimed(entries, mark, words):
    got = said(certificate(**entries))["One change at a time"]
    assert got[0] == mark
    assert words in got[1]
    assert mark == "good" or "No single" not in got[1]


@pytest.mark.parametrize(
    ("entries", "mark", "words"),
    [
        ({"epsilon": 0.1, "lipschitz": 2.0, "distance": 0.0}, "good", "agrees with the condition"),
        ({"epsilon": 0.1, "lipschitz": 200.0, "distance": 0.0}, "good", "sufficient, not necessary"),
        ({"epsilon": 0.9, "lipschitz": 200.0, "distance": 0.0}, "open", "the search ended at eps = 0.9"),
        ({}, "open", "above 2 (eps below 0.5)."),
        ({"epsilon_star": math.inf}, "good", "even without a penalty"),
        ({"epsilon_star": 0.0}, "open", "No strength of the penalty on fractions was found"),
    ],
)
def test_what_holds_the_answer(entries, mark, words):
    got = said(certificate(**entries))["Held in place"]
    assert got[0] == mark
    assert words in got[1]
    assert "proves" not in got[1]
    assert "guarantee" not in got[1]


@pytest.mark.parametrize(("gap", "words"), [(0.5, "0.5 above that"), (-0.5, "0.5 below that"), (0.0, "equals that")])
def test_against_the_relaxed_answer(gap, words):
    text = said(certificate(relaxed_gap=gap))["The price of yes or no"][1]
    assert words in text
    assert "not a bound" in text


def test_what_it_leaves_open_is_always_said():
    for question in (ROWS, GROUPS):
        assert "no proof" in said(certificate(), question=question)["What this does not say"][1]


@pytest.mark.parametrize("status", list(mb.Status))
def test_every_ending_has_words(status):
    got = said(None, status.value)
    assert got["Yes or no"][0] == ("good" if status is mb.Status.BINARY else "open")
    assert "was not" in got["Not checked"][1]
