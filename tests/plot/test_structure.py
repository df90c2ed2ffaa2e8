"""The heat map of a structure: first what it shows, then that it is drawn."""

import subprocess
import sys

import numpy as np
import pytest

import mixbin as mb
from mixbin import plot
from mixbin.errors import InvalidInput
from mixbin.plot import draw, structure_map
from mixbin.plot.figure import svg_text
from tests.plot.texts import figures, words

structure = figures(plot.structure)

LABELS = np.array([2, 0, 1, 0, 2, 1, 1])
THETA = np.eye(4)[LABELS]


def test_features_are_sorted_by_group():
    got = structure_map(THETA, names=list("abcdefg"), title="found")
    assert got.row_labels == tuple("bdcfgae")
    assert got.column_labels == ("0", "1", "2", "3")
    assert got.title == "found"
    np.testing.assert_array_equal(got.matrix, THETA[got.order])
    np.testing.assert_array_equal(got.matrix.argmax(axis=1), np.sort(LABELS))


def test_without_names_features_have_their_numbers():
    got = structure_map(THETA)
    assert got.row_labels == tuple(str(i) for i in got.order)


def test_a_feature_without_a_group_comes_last():
    theta = THETA.astype(bool)
    theta[1] = False
    got = structure_map(theta)
    assert got.order[-1] == 1
    assert not got.matrix[-1].any()


def test_relaxed_features_are_sorted_by_their_largest_entry():
    theta = np.array([[0.6, 0.4], [0.1, 0.9], [0.9, 0.1], [0.3, 0.7]])
    got = structure_map(theta)
    np.testing.assert_array_equal(got.order, [2, 0, 1, 3])
    np.testing.assert_array_equal(got.matrix, theta[got.order])


def test_groups_stand_where_those_they_resemble_do():
    """Renamed groups show the same picture, whatever their numbers."""
    rename = np.array([3, 0, 2, 1])
    theta = np.eye(4)[rename[LABELS]]
    got, true = structure_map(theta, labels=LABELS), structure_map(np.eye(3)[LABELS], labels=LABELS)
    np.testing.assert_array_equal(got.matrix[:, :3], true.matrix)
    assert got.column_labels == ("3", "0", "2", "1")
    assert got.row_labels == true.row_labels
    np.testing.assert_array_equal(got.matrix, theta[got.order][:, [int(label) for label in got.column_labels]])


def test_fewer_groups_than_the_truth():
    got = structure_map(np.eye(2)[LABELS % 2], labels=LABELS)
    assert sorted(got.column_labels) == ["0", "1"]
    np.testing.assert_array_equal(LABELS[got.order], np.sort(LABELS))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones(3),), "theta must be an array of numbers with 2 dimensions"),
        ((THETA * 2,), r"theta must be a structure .* with entries in \[0, 1\]"),
        ((np.ones((0, 3)),), "theta must be a structure"),
        ((THETA * np.nan,), "theta must be finite"),
        ((THETA, ["a"]), "names must have one entry per feature, got 1 for 7"),
        ((THETA, None, [0, 1]), "labels must have one entry per feature, got 2 for 7"),
        ((THETA, None, np.ones(7)), "labels must be whole numbers"),
    ],
)
def test_bad_structures_are_refused(args, message):
    with pytest.raises(InvalidInput, match=message):
        structure_map(*args)
    # The figure calls its first argument "result".
    with pytest.raises(InvalidInput, match=message.replace("theta", "result")):
        plot.structure(*args)


class Shy:
    """An object that cannot be rendered."""

    def __repr__(self):
        raise RuntimeError("no repr")


def test_names_and_titles_need_not_be_text():
    got = words(structure(np.eye(2), [np.int64(7), Shy()], title=Shy()))
    assert {"7", "a Shy"} <= set(got)
    assert got.count("a Shy") == 2


def test_drawing_nothing_is_refused():
    with pytest.raises(InvalidInput, match="maps must hold at least one structure"):
        draw()


def drawn(axes):
    """The matrix that the cells show, by where they are."""
    cells, matrix = axes.collections[0], np.zeros((7, len(axes.get_xticks())))
    for path, value in zip(cells.get_paths(), cells.get_array(), strict=True):
        column, row = path.vertices.min(axis=0).astype(int)
        matrix[row, column] = value
    return matrix


def test_the_figure_shows_the_map():
    figure = structure(THETA, names=list("abcdefg"), labels=LABELS)
    found, true = figure.axes
    assert [axes.get_title() for axes in (found, true)] == ["found", "true"]
    assert [text.get_text() for text in found.get_yticklabels()] == list("bdcfgae")
    assert list(true.get_yticks()) == []
    np.testing.assert_array_equal(drawn(found), structure_map(THETA, labels=LABELS).matrix)
    # The first feature is at the top.
    assert found.get_ylim() == (7, 0)


def test_svg_keeps_its_text_and_its_bytes():
    names = ["<cost> in $", "日本", "a_{very} long name that goes on and on", *"defg"]
    one, two = (svg_text(structure(THETA, names)) for _ in range(2))
    assert one == two
    for text in ("feature, sorted by group", "group", "&lt;cost&gt; in $", "日本", "a_{very} long name that…"):
        assert f">{text}</text>" in one


def test_relaxed_structures_have_a_scale():
    assert ">membership</text>" in svg_text(structure(0.5 * THETA))


def test_of_many_features_some_are_named():
    figure = structure(np.eye(3)[np.arange(250) % 3])
    assert len(figure.axes[0].get_yticks()) == 84
    assert "(1 in 3 named)" in figure.axes[0].get_ylabel()
    assert max(figure.get_size_inches()) < 20


def test_matplotlib_waits_until_something_is_drawn_and_pyplot_for_ever():
    code = (
        "import sys, numpy as np, mixbin as mb\n"
        "mb.plot.structure_map(np.eye(3)); print('matplotlib' in sys.modules)\n"
        "mb.plot.structure(np.eye(3)); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_public_names():
    assert mb.plot.structure is plot.structure
