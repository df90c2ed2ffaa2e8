"""BlogFeedback and YearPredictionMSD from the UCI archive, in float64, split as in the published experiments.

See docs/maths.md, "BlogFeedback and YearPredictionMSD", for the splits and for two numbers that a correct loader reproduces.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixbin._validate import Floats
from mixbin.datasets.sources import Source, column, digest, matrix, members, opened, parse
from mixbin.errors import InvalidInput

BLOG = Source(
    loader="load_blog",
    title="BlogFeedback",
    names=("BlogFeedback.zip", "blogfeedback.zip", "blogData_train.csv"),
    url="https://archive.ics.uci.edu/static/public/304/blogfeedback.zip",
)
BLOG_FILES = 60
BLOG_ROWS, BLOG_COLUMNS = (52_397, 7_624), 281
BLOG_TEST = 1_089
BLOG_DIGEST = "786654790b844eb70970423238fb4e347c7d550319c1587c67833f92593d5baf"

MUSIC = Source(
    loader="load_music",
    title="YearPredictionMSD",
    names=(
        "YearPredictionMSD.txt",
        "YearPredictionMSD.txt.zip",
        "yearpredictionmsd.zip",
        "YearPredictionMSD.csv.gz",
        "YearPredictionMSD_random7000.csv.gz",
        "YearPredictionMSD_first1176.csv.gz",
    ),
    url="https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
)
MUSIC_COLUMNS = 91
MUSIC_PARTS = (231_857, 231_858, 51_630)
"""The numbers of training, test and validation rows, in file order."""
MUSIC_FIRST = (2001, 49.94357, 21.47114, 73.0775, 8.74861)
"""The first numbers of the first row."""
MUSIC_YEARS = (1922, 2011)
RANDOM7000, RANDOM7000_TRAIN, RANDOM7000_DIGEST = 7_000, 5_000, "94ccc020b5ea37def3775814fb4a43a0dedc985b30d88f9e8e1e6f3e661764c2"
FIRST1176, FIRST1176_DIGEST = 1_176, "f399db30f222536700aa4989b1fb12495a9aebcba51dcc6662af2743dcf583d5"


@dataclass(frozen=True, eq=False, repr=False)
class RegressionData:
    """Training, validation and test rows of a regression, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> X, y = np.eye(4), np.arange(4.0)
    >>> mb.datasets.RegressionData(X, y, X, y, X, y, "small", "four rows")
    RegressionData(small: 4 training, 4 validation and 4 test rows, 4 features)
    """

    X: Floats
    y: Floats
    X_val: Floats
    y_val: Floats
    X_test: Floats
    y_test: Floats
    name: str
    description: str

    def __repr__(self) -> str:
        rows = f"{len(self.y):,} training, {len(self.y_val):,} validation and {len(self.y_test):,} test rows"
        return f"RegressionData({self.name}: {rows}, {self.X.shape[1]} features)"


def load_blog(path: str | os.PathLike[str] | None = None) -> RegressionData:
    """Load BlogFeedback: how many comments a blog post gets in the next 24 hours (52,397 training rows, 280 features).

    The 60 test files in the order of their names have 7,624 rows: the first 1,089 are the test set, the others the validation
    set.

    Parameters
    ----------
    path : path, optional
        The UCI archive (BlogFeedback.zip), its unpacked folder, or a folder that contains the archive. By default the folder that
        the environment variable MIXBIN_DATA names; if the data are not there either, they are downloaded once into the user's
        cache.

    Returns
    -------
    RegressionData
        The data, after a check of their checksum.

    References
    ----------
    K. Buza (2014), "Feedback Prediction for Blogs"; UCI Machine Learning Repository, data set 304.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.datasets.load_blog()  # doctest: +SKIP
    RegressionData(blog: 52,397 training, 6,535 validation and 1,089 test rows, 280 features)
    """
    return BLOG.read(path, _blog)


def load_music(path: str | os.PathLike[str] | None = None) -> RegressionData:
    """Load YearPredictionMSD: the year of a song from its timbre (231,857 training rows, 90 features).

    Rows in file order: 231,857 training, 231,858 test, 51,630 validation.

    Parameters
    ----------
    path : path, optional
        YearPredictionMSD.txt, plain, zipped or gzipped, or a folder that contains it. By default the folder that the environment
        variable MIXBIN_DATA names; if the data are not there either, they are downloaded once (some 200 MB) into the user's
        cache. Two excerpts are accepted too, and the result's ``name`` tells. Of the excerpt of 7,000 random rows, the last 2,000
        are the test set, and 1,000 of the others, always the same, the validation set. The excerpt of the first 1,176 rows is
        split 60/20/20 in file order.

    Returns
    -------
    RegressionData
        The data, after a check of their shape, years and first row (of an excerpt: of their checksum).

    References
    ----------
    T. Bertin-Mahieux et al. (2011), "The Million Song Dataset"; UCI Machine Learning Repository, data set 203.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.datasets.load_music()  # doctest: +SKIP
    RegressionData(music: 231,857 training, 51,630 validation and 231,858 test rows, 90 features)
    """
    return MUSIC.read(path, _music)


def _blog(place: Path) -> RegressionData:
    with members(place, r"blogData_(train|test-.*)\.csv") as files:
        if len(files) != BLOG_FILES + 1 or "blogData_train.csv" not in files:
            raise InvalidInput(
                f"{str(place)!r} must hold blogData_train.csv and {BLOG_FILES} test files, got {len(files)} of these "
                f"{BLOG_FILES + 1}; unpack BlogFeedback.zip again"
            )
        tables = {}
        for name, open_file in files.items():
            with open_file() as stream:
                tables[name] = parse(stream, name, BLOG_COLUMNS)
    # The files are sorted by name: "test" comes before "train", and the test files are in the order of their dates.
    *held_out, train = tables.values()
    features, target = range(BLOG_COLUMNS - 1), BLOG_COLUMNS - 1
    X, y = matrix(train, features), column(train, target)
    X_held = np.concatenate([matrix(table, features) for table in held_out])
    y_held = np.concatenate([column(table, target) for table in held_out])
    if (len(y), len(y_held)) != BLOG_ROWS or digest(X, y, X_held, y_held) != BLOG_DIGEST:
        raise InvalidInput(
            f"{str(place)!r} must hold the {BLOG_ROWS[0]:,} training and {BLOG_ROWS[1]:,} test rows of BlogFeedback, "
            f"got {len(y):,} and {len(y_held):,} rows, or other numbers; unpack BlogFeedback.zip again"
        )
    test, validation = slice(None, BLOG_TEST), slice(BLOG_TEST, None)
    return RegressionData(
        X=X,
        y=y,
        X_val=X_held[validation],
        y_val=y_held[validation],
        X_test=X_held[test],
        y_test=y_held[test],
        name="blog",
        description="BlogFeedback (UCI 304): comments in the 24 hours after a base time, from 280 features of a blog post",
    )


def _music(file: Path) -> RegressionData:
    with opened(file, r"YearPredictionMSD.*\.(txt|csv)") as stream:
        table = parse(stream, file.name, MUSIC_COLUMNS)
    X, y = matrix(table, range(1, MUSIC_COLUMNS)), column(table, 0)
    train, validation, test, name = _music_split(file, X, y)
    excerpt = "" if name == "music" else f", an excerpt of {len(y):,} rows"
    return RegressionData(
        X=X[train],
        y=y[train],
        X_val=X[validation],
        y_val=y[validation],
        X_test=X[test],
        y_test=y[test],
        name=name,
        description=f"YearPredictionMSD (UCI 203): the year of a song from 90 features of its timbre{excerpt}",
    )


Part = slice | np.ndarray


def _music_split(file: Path, X: Floats, y: Floats) -> tuple[Part, Part, Part, str]:
    """The training, validation and test rows, and the name of the data set or excerpt in the file."""
    n_train, n_test, _ = MUSIC_PARTS
    if len(y) == sum(MUSIC_PARTS) and _begins_like_music(X, y):
        return slice(n_train), slice(n_train + n_test, None), slice(n_train, n_train + n_test), "music"
    if len(y) == RANDOM7000 and digest(X, y) == RANDOM7000_DIGEST:
        order = np.random.default_rng(0).permutation(RANDOM7000_TRAIN)
        validation, train = np.split(order, [RANDOM7000_TRAIN // 5])
        return np.sort(train), np.sort(validation), slice(RANDOM7000_TRAIN, None), "music (excerpt: 7,000 random rows)"
    if len(y) == FIRST1176 and digest(X, y) == FIRST1176_DIGEST:
        first, second = round(0.6 * len(y)), round(0.8 * len(y))
        return slice(first), slice(first, second), slice(second, None), "music (excerpt: the first 1,176 rows)"
    raise InvalidInput(
        f"{str(file)!r} must hold the {sum(MUSIC_PARTS):,} rows of YearPredictionMSD as published, or one of its excerpts of "
        f"{RANDOM7000:,} and {FIRST1176:,} rows, got {len(y):,} rows, or other numbers; fetch it again"
    )


def _begins_like_music(X: Floats, y: Floats) -> bool:
    """Whether the first row and the range of the years are those of YearPredictionMSD."""
    first = (y[0], *X[0, : len(MUSIC_FIRST) - 1])
    years = bool(np.all(y == np.round(y))) and (y.min(), y.max()) == MUSIC_YEARS
    return years and first == MUSIC_FIRST
