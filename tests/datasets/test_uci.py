"""The published data sets: every way to find them, their splits, and other files refused.

The splits are checked against the anchors of docs/maths.md, "BlogFeedback and YearPredictionMSD".
"""

import dataclasses
import functools
import gzip
import http.server
import socket
import threading
import zipfile

import numpy as np
import pytest

import mixbin as mb
from mixbin.datasets import sources, uci
from mixbin.errors import InvalidInput
from tests.shared_data import shared_file

EXCERPTS = {
    "YearPredictionMSD_random7000.csv.gz": (4_000, 1_000, 2_000, "7,000 random rows"),
    "YearPredictionMSD_first1176.csv.gz": (706, 235, 235, "first 1,176 rows"),
}


@pytest.fixture(autouse=True)
def nothing_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("MIXBIN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


# The real files.


@pytest.fixture(scope="module")
def blog():
    return mb.datasets.load_blog(shared_file("BlogFeedback.zip"))


@pytest.mark.slow
def test_blog_is_split_as_published(blog):
    assert (blog.X.shape, blog.X_val.shape, blog.X_test.shape) == ((52_397, 280), (6_535, 280), (1_089, 280))
    assert (blog.y.shape, blog.y_val.shape, blog.y_test.shape) == ((52_397,), (6_535,), (1_089,))
    assert {x.dtype for x in (blog.X, blog.y, blog.X_val, blog.y_val, blog.X_test, blog.y_test)} == {np.dtype(np.float64)}
    assert blog.name == "blog"
    assert "BlogFeedback" in blog.description
    assert repr(blog) == "RegressionData(blog: 52,397 training, 6,535 validation and 1,089 test rows, 280 features)"


@pytest.mark.slow
def test_the_anchor_of_the_published_run(blog):
    v = np.full(len(blog.y), 10_479 / 52_397)
    for X, y, anchor in ((blog.X_val, blog.y_val, 365.4181231), (blog.X_test, blog.y_test, 257.8363169)):
        problem = mb.RidgeDistillation(blog.X, blog.y, X, y, budget=0.2, alpha=100.0)
        assert problem.theta_set.k == 10_479
        np.testing.assert_allclose(problem.evaluate(v, np.empty(0), gradient=False).value, anchor, rtol=0, atol=5e-8)


@pytest.mark.slow
def test_blog_from_the_unpacked_folder_named_by_the_variable(blog, tmp_path, monkeypatch):
    with zipfile.ZipFile(shared_file("BlogFeedback.zip")) as archive:
        archive.extractall(tmp_path)
    monkeypatch.setenv("MIXBIN_DATA", str(tmp_path))
    again = mb.datasets.load_blog()
    np.testing.assert_array_equal(again.X_test, blog.X_test)
    np.testing.assert_array_equal(again.y, blog.y)


@pytest.mark.parametrize("name", EXCERPTS)
def test_excerpts_of_music(name):
    rows = EXCERPTS[name]
    got = mb.datasets.load_music(shared_file(name))
    assert (len(got.X), len(got.X_val), len(got.X_test), got.X.shape[1]) == (*rows[:3], 90)
    assert got.name == f"music (excerpt: {'the ' if 'first' in name else ''}{rows[3]})"
    assert "excerpt" in got.description
    with gzip.open(shared_file(name)) as file:
        table = np.loadtxt(file, delimiter=",")
    train = np.concatenate([np.column_stack([got.y, got.X]), np.column_stack([got.y_val, got.X_val])])
    head = table[: len(train)]
    order, expected = np.lexsort(train.T), np.lexsort(head.T)
    np.testing.assert_array_equal(train[order], head[expected])
    np.testing.assert_array_equal(np.column_stack([got.y_test, got.X_test]), table[-rows[2] :])
    again = mb.datasets.load_music(shared_file(name))
    np.testing.assert_array_equal(again.X_val, got.X_val)


# Small ones in their place.


@pytest.fixture
def small_blog(monkeypatch):
    """Three training rows and two test files of two rows each; the numbers and the archive's files."""
    rows = np.arange(28.0).reshape(7, 4) / 4
    text = ["\n".join(",".join(map(str, row)) for row in part) + "\n" for part in (rows[:3], rows[3:5], rows[5:])]
    names = ["blogData_train.csv", "blogData_test-2012.03.25.00_00.csv", "blogData_test-2012.03.26.01_00.csv"]
    monkeypatch.setattr(uci, "BLOG_FILES", 2)
    monkeypatch.setattr(uci, "BLOG_ROWS", (3, 4))
    monkeypatch.setattr(uci, "BLOG_COLUMNS", 4)
    monkeypatch.setattr(uci, "BLOG_TEST", 1)
    monkeypatch.setattr(uci, "BLOG_DIGEST", sources.digest(rows[:3, :3], rows[:3, 3], rows[3:, :3], rows[3:, 3]))
    return rows, dict(zip(names, text, strict=True))


def zipped(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("New Folder/", "")
        for name, text in reversed(files.items()):
            archive.writestr(name, text)
    return path


def test_test_files_in_the_order_of_their_names(small_blog, tmp_path):
    rows, files = small_blog
    got = mb.datasets.load_blog(zipped(tmp_path / "any.zip", files))
    np.testing.assert_array_equal(got.X, rows[:3, :3])
    np.testing.assert_array_equal(got.y_test, rows[3:4, 3])
    np.testing.assert_array_equal(got.y_val, rows[4:, 3])
    got.y[0] = 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: files.pop("blogData_test-2012.03.26.01_00.csv"), "must hold blogData_train.csv and 2 test files, got 2"),
        (lambda files: files.pop("blogData_train.csv"), "must hold blogData_train.csv and 2 test files"),
        (lambda files: files.update({"blogData_train.csv": "1,2,3,4\n"}), "must hold the 3 training and 4 test rows"),
        (lambda files: files.update({"blogData_train.csv": "1,2,3\n"}), "'blogData_train.csv' must hold 4 columns of numbers"),
        (lambda files: files.update({"blogData_train.csv": "1,2,x,3\n"}), "'blogData_train.csv' must hold 4 columns of numbers"),
        (lambda files: files.update({"blogData_train.csv": "1,2,,3\n"}), "'blogData_train.csv' must hold 4 columns of numbers"),
    ],
)
def test_what_is_not_blog_is_refused(small_blog, tmp_path, change, message):
    _, files = small_blog
    change(files)
    with pytest.raises(InvalidInput, match=message):
        mb.datasets.load_blog(zipped(tmp_path / "BlogFeedback.zip", files))


def test_one_other_number_is_noticed(small_blog, tmp_path):
    _, files = small_blog
    files["blogData_train.csv"] = files["blogData_train.csv"].replace("0.25", "0.250001", 1)
    with pytest.raises(InvalidInput, match=r"or other numbers; unpack BlogFeedback\.zip again"):
        mb.datasets.load_blog(zipped(tmp_path / "BlogFeedback.zip", files))


def test_no_zip(tmp_path):
    (tmp_path / "BlogFeedback.zip").write_text("404: not found")
    with pytest.raises(InvalidInput, match="cannot be read as a zip archive"):
        mb.datasets.load_blog(tmp_path)


@pytest.mark.parametrize("load", [mb.datasets.load_blog, mb.datasets.load_music])
def test_a_path_that_is_not_there(load, tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InvalidInput, match=r"path must be .* or a folder that holds it, got .*; put .* MIXBIN_DATA"):
            load(path)


def test_a_variable_that_names_no_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MIXBIN_DATA", str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="MIXBIN_DATA must name a folder"):
        mb.datasets.load_blog()


# Downloads.


@pytest.fixture
def server(tmp_path):
    """The address of a folder, and the requests that were made."""
    folder, asked = tmp_path / "served", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{made.server_port}/blogfeedback.zip", asked
    made.shutdown()
    thread.join()
    made.server_close()


def test_downloaded_once(small_blog, server, monkeypatch):
    rows, files = small_blog
    folder, url, asked = server
    zipped(folder / "blogfeedback.zip", files)
    monkeypatch.setattr(uci, "BLOG", dataclasses.replace(uci.BLOG, url=url))
    for _ in range(2):
        np.testing.assert_array_equal(mb.datasets.load_blog().X, rows[:3, :3])
    assert len(asked) == 1


def test_a_wrong_download_is_not_kept(small_blog, server, monkeypatch):
    rows, files = small_blog
    folder, url, asked = server
    zipped(folder / "blogfeedback.zip", files | {"blogData_train.csv": "1,2,3,4\n"})
    monkeypatch.setattr(uci, "BLOG", dataclasses.replace(uci.BLOG, url=url))
    with pytest.raises(InvalidInput, match="3 training and 4 test rows"):
        mb.datasets.load_blog()
    zipped(folder / "blogfeedback.zip", files)
    np.testing.assert_array_equal(mb.datasets.load_blog().X, rows[:3, :3])
    assert len(asked) == 2


def test_without_file_and_network_the_error_says_what_to_put_where(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/blogfeedback.zip"
    monkeypatch.setattr(uci, "BLOG", dataclasses.replace(uci.BLOG, url=url))
    with pytest.raises(InvalidInput, match=r"BlogFeedback is not on this machine and could not be downloaded .*; put") as error:
        mb.datasets.load_blog()
    for part in ("BlogFeedback.zip", "MIXBIN_DATA", "load_blog(path)", url):
        assert part in str(error.value)


def test_the_addresses_are_those_of_the_archive():
    for source in (uci.BLOG, uci.MUSIC):
        assert source.url.startswith("https://archive.ics.uci.edu/static/public/")


# The whole of music, made small.


@pytest.fixture
def small_music(monkeypatch):
    rows = np.zeros((12, 91))
    rows[:, 0] = np.linspace(1922, 2011, 12).round()
    rows[0, :5] = uci.MUSIC_FIRST
    rows[1, 0] = 1922
    rows[:, 90] = np.arange(12)
    monkeypatch.setattr(uci, "MUSIC_PARTS", (5, 4, 3))
    return rows, "\n".join(",".join(map(str, row)) for row in rows).encode()


@pytest.mark.parametrize("kind", ["txt", "csv.gz", "zip"])
def test_music_in_file_order_train_test_validation(small_music, tmp_path, kind):
    rows, text = small_music
    file = tmp_path / {"zip": "yearpredictionmsd.zip"}.get(kind, f"YearPredictionMSD.{kind}")
    if kind == "zip":
        zipped(file, {"YearPredictionMSD.txt": text})
    else:
        file.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    got = mb.datasets.load_music(tmp_path)
    assert got.name == "music"
    np.testing.assert_array_equal(got.y, rows[:5, 0])
    np.testing.assert_array_equal(got.X_test, rows[5:9, 1:])
    np.testing.assert_array_equal(got.X_val, rows[9:, 1:])


@pytest.mark.parametrize(("at", "value"), [((3, 0), 2012), ((3, 0), 1999.5), ((0, 2), 0.0)])
def test_what_is_not_music_is_refused(small_music, tmp_path, at, value):
    rows, _ = small_music
    rows[at] = value
    np.savetxt(tmp_path / "YearPredictionMSD.txt", rows, delimiter=",")
    with pytest.raises(InvalidInput, match=r"must hold the 12 rows of YearPredictionMSD .* or other numbers; fetch it again"):
        mb.datasets.load_music(tmp_path)


def test_a_damaged_file_is_refused(small_music, tmp_path):
    (tmp_path / "YearPredictionMSD.csv.gz").write_bytes(gzip.compress(small_music[1])[:-20])
    with pytest.raises(InvalidInput, match="must hold 91 columns of numbers"):
        mb.datasets.load_music(tmp_path)
    zipped(tmp_path / "other.zip", {"notes.txt": "1"})
    with pytest.raises(InvalidInput, match="must hold one file named like"):
        mb.datasets.load_music(tmp_path / "other.zip")
