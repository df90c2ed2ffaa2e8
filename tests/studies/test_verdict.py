"""The verdict and its red lines, on made runs of all kinds."""

import pytest

from mixbin.reporting.record import Line, Record
from mixbin.reporting.verdict import apart
from mixbin.studies.distillation.classification import Classification
from mixbin.studies.distillation.regression import Regression
from mixbin.studies.groups.study import Groups


def record(kind, facts, *lines):
    return Record(kind, facts, lines, None, {}, {}, "", {})


def rows_run(ratio, random, *, excess=0.004, test=True):
    """A distillation whose error is ``ratio`` times that of all rows, where random rows have ``random`` times."""
    part = "test" if test else "unkept"
    numbers = {f"{part}_rmse": ratio, "unkept_rmse": ratio, "ratio": ratio, "rows": 30, "full_rmse": 0.1}
    drawn = {f"{part}_rmse": random, "ratio": random, "ratio_spread": 0.02, "rows": 30}
    facts = {"rows": 1000, "test_rows": 200 if test else None, "budget": 30, "excess": excess, "judge": "full"}
    everything = Line("all rows", {f"{part}_rmse": 1.0, "ratio": 1.0, "rows": 1000})
    return record("regression", facts, everything, Line("random rows", drawn), Line("penalize", numbers, "BINARY"))


class TestRows:
    def test_better(self):
        said, red = Regression.verdict(rows_run(1.002, 1.10))
        assert said == (
            "30 of 1,000 rows train a model whose error on 200 test rows is 0.2\xa0% above that of all rows; 30 random rows: "
            "10\xa0% above (± 2\xa0% from draw to draw). No choice of rows could be more than 0.4\xa0% better, by the objective "
            "that judges."
        )
        assert red == ()

    def test_level(self):
        said, red = Regression.verdict(rows_run(1.0, 1.0))
        assert "is equal to that of all rows; 30 random rows: equal (± 2" in said
        assert red == ()
        assert Regression.verdict(rows_run(1.0105, 1.01)).red == ()  # another draw would change more

    def test_worse_than_all_rows(self):
        said, red = Regression.verdict(rows_run(1.08, 1.2))
        assert "8\xa0% above that of all rows" in said
        assert red == ("Worse than all rows: the error is 8\xa0% larger. Keep more rows, or all of them.",)
        assert Regression.verdict(rows_run(1.0499, 1.2)).red == ()

    def test_worse_than_random_rows(self):
        said, red = Regression.verdict(rows_run(1.04, 1.02))
        assert "30 random rows: 2\xa0% above" in said
        assert red == ("Worse than random rows: the error is 2\xa0% larger. Random rows are the better choice here.",)

    def test_worse_than_both(self):
        assert len(Regression.verdict(rows_run(1.3, 1.2)).red) == 2

    def test_better_than_all_rows(self):
        assert "3\xa0% below that of all rows; 30 random rows: 1\xa0% below" in Regression.verdict(rows_run(0.97, 0.99)).sentence

    def test_without_test_rows_it_says_which_rows(self):
        said = Regression.verdict(rows_run(1.002, 1.1, test=False)).sentence
        assert "error on the candidate rows that were not kept is 0.2\xa0% above" in said

    def test_without_a_bound(self):
        assert "No choice of rows" not in Regression.verdict(rows_run(1.002, 1.1, excess=None)).sentence

    def test_all_rows_without_an_error(self):
        run = rows_run(None, None)
        run.lines[-1].numbers["test_rmse"] = 0.25
        said, red = Regression.verdict(run)
        assert "an error of 0.25 on 200 test rows; all rows make no error there" in said
        assert len(red) == 1

    def test_a_record_of_an_earlier_version_has_none(self):
        run = rows_run(1.0, 1.0)
        assert Regression.verdict(record("regression", run.facts, run.lines[0], run.lines[-1])) is None


class TestClasses:
    def run(self, ratio, random, budget=30):
        part = "test" if budget else "unkept"
        numbers = {f"{part}_accuracy": 0.9, "ratio": ratio, "rows": 30}
        facts = {"rows": 100, "test_rows": 50 if budget else None, "budget": budget, "task": "classification"}
        drawn = Line("random rows", {"ratio": random, "ratio_spread": 0.1})
        return record("classification", facts, Line("all rows", {}), drawn, Line("penalize", numbers, "BINARY"))

    def test_the_share_of_wrong_classes(self):
        said, red = Classification.verdict(self.run(1.02, 1.3))
        assert "2\xa0% above that of all rows; 30 random rows: 30\xa0% above" in said
        assert red == ()
        assert len(Classification.verdict(self.run(1.5, 1.3)).red) == 2

    def test_doubted_rows_judge_nothing(self):
        said, red = Classification.verdict(self.run(3.0, 1.0, budget=None))
        assert "not known: the rows that were dropped are those whose labels are doubted" in said
        assert red == ()


class TestGroups:
    def run(self, found, nothing, one, test=True):
        def numbers(value):
            return {"test_loss": value if test else None, "validation_loss": value, "groups": 4}

        facts = {"features": 24, "test_rows": 720 if test else None}
        lines = (
            Line("no structure", numbers(nothing)),
            Line("one group", numbers(one)),
            Line("penalize", numbers(found), "BINARY"),
        )
        return record("groups", facts, *lines)

    def test_better(self):
        said, red = Groups.verdict(self.run(0.5, 1.0, 0.8))
        assert "is 50\xa0% below that of no structure and 37\xa0% below that of one group" in said.replace("38", "37")
        assert "G on 720 test rows" in said
        assert red == ()

    def test_level(self):
        said, red = Groups.verdict(self.run(1.0, 1.0, 1.0))
        assert "equal to that of no structure and equal to that of one group" in said
        assert red == ()

    def test_worse(self):
        red = Groups.verdict(self.run(1.1, 1.0, 1.2)).red
        assert red == ("Worse than no structure: G on the test rows is 10\xa0% larger. Do without these groups.",)

    def test_without_test_rows_new_data_are_not_known(self):
        said, red = Groups.verdict(self.run(0.5, 1.0, 0.8, test=False))
        assert "error on new data is not known: there are no test rows, and the validation rows chose the groups" in said
        assert red == ()


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.0, "equal"), (1.00004, "equal"), (0.9, "10\xa0% below"), (3.5, "250\xa0% above"), (float("inf"), "far above")],
)
def test_a_distance_in_words(ratio, words):
    assert apart(ratio) == words
