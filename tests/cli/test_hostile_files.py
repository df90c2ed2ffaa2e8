"""Files that nobody wrote for us, full disks, runs that are not this one: one line that says what to do, no traceback."""

import errno
import gzip
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import warnings
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from mixbin.cli import app
from mixbin.data.parquet import ParquetFolder
from mixbin.data.parquet_pieces import PieceRows
from mixbin.errors import InvalidInput
from mixbin.studies.distillation import parquet as parquet_study
from mixbin.studies.distillation.options import DistillOptions
from mixbin.studies.options import Method

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["a", "b", "c", "price"]
# Few evaluations: the files are under test, not the methods.
QUICK = ["--budget", "20%", "--alpha", "0.01", "--max-evaluations", "8", "--method", "relax"]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(arg) for arg in args], prog_name="mixbin")


def distill(file, out, *more):
    return invoke("distill", file, "--target", "price", *QUICK, "--out", out, *more)


def complaint(got, code=2):
    """The one line on stderr."""
    assert got.exit_code == code, (got.output, got.exception)
    assert (got.stdout, got.stderr.count("\n")) == ("", 1)
    assert got.stderr.startswith("mixbin: ")
    return got.stderr


def process(*args, **how):
    """The command in a process of its own, which is ended where it hangs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "mixbin", *map(str, args)]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    return subprocess.run(command, env=environment, text=True, timeout=30, **how)


def frame(rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-9, 9, size=(rows, 3))
    return pd.DataFrame(np.column_stack([X, X @ [1, -2, 3] + rng.integers(3, size=rows)]).astype(float), columns=NAMES)


def text(rows=40, seed=0):
    return frame(rows, seed).to_csv(index=False).encode()


def as_parquet(table):
    out = io.BytesIO()
    parquet.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False), out)
    return out.getvalue()


def columns(*names):
    return pa.table([pa.array(np.arange(20.0))] * len(names), names=list(names))


def as_zip(content=None, kind=zipfile.ZIP_STORED, **patch):
    """A table in a zip; ``patch`` are bytes of its two headers to change, by their places in the local one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        archive.writestr("t.csv", text() if content is None else content)
    data = bytearray(out.getvalue())
    central = data.index(b"PK\1\2")
    for place, value in patch.items():
        data[int(place[2:])] = data[central + int(place[2:]) + 2] = value
    return bytes(data)


# Tables.

LONG_NAME = b"x" * 140_000
TABLES = {
    "a long name": ("t.csv", LONG_NAME + text()[1:], "the first row of {file} cannot be read as CSV (field larger than"),
    "a quote in the first row": ("t.csv", b'"' + text(), "the first row of {file} cannot be read as CSV (a quote is opened"),
    "a long field": (
        "t.csv",
        text() + b"1,2,3," + b"y" * 3_000_000 + b"\n",
        "column 'price' of {file} must hold numbers, got 'yyy",
    ),
    "a long number": ("t.csv", text() + b"1,2,3," + b"9" * 3_000_000 + b"\n", "column 'price' of {file} is not finite in row 40"),
    "a late zero byte": ("t.csv", text(900) + b"1,2,\0,3\n", "{file} must be a CSV file in UTF-8 or a Parquet file"),
    "a short row that is not UTF-8": ("t.csv", text() + b"1,\xcc\n", "(invalid UTF8 data: byte 0xcc in line 42); save it as"),
    "no line end": ("t.csv", b"a,price", "{file} must hold rows of numbers, got none; check the file"),
    "an empty file": ("t.csv", b"", "{file} must hold rows of numbers, got an empty file"),
    "gzip with more": ("t.csv.gz", gzip.compress(text()) + b"and more", "{file} cannot be unpacked (Not a gzipped file"),
    "an encrypted zip": ("t.zip", as_zip(at6=1), "{file} cannot be unpacked (File 't.csv' is encrypted, password required"),
    "a zip of another method": ("t.zip", as_zip(at8=99), "{file} cannot be unpacked (That compression method is not supported)"),
    "a zip of another version": ("t.zip", as_zip(at4=99), "{file} cannot be unpacked (zip file version 9.9)"),
    "a damaged LZMA zip": (
        "t.zip",
        as_zip(kind=zipfile.ZIP_LZMA)[:60] + b"\xff" * 20 + as_zip(kind=zipfile.ZIP_LZMA)[80:],
        "{file} cannot be unpacked (Corrupt input data)",
    ),
    "Parquet with a name twice": (
        "t.parquet",
        as_parquet(columns("a", "a", "price")),
        "{file} must name its columns differently, got 'a' twice; rename one",
    ),
    "Parquet without its end": ("t.parquet", as_parquet(frame())[:-20], "{file} cannot be read as Parquet"),
    "Parquet with a bad page": (
        "t.parquet",
        b"PAR1" + bytes(300) + as_parquet(frame())[304:],
        "{file} cannot be read as Parquet",
    ),
    "Parquet with bad text": (
        "t.parquet",
        as_parquet(frame().assign(label="sign")).replace(b"sign", b"si\xff\xfe"),
        "{file} cannot be read as Parquet (Column 4: In chunk 0: Invalid",
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_refused_by_name(tmp_path, kind):
    name, content, message = TABLES[kind]
    file = tmp_path / name
    file.write_bytes(content)
    more = ["--ignore", "label"] if "text" in kind else []
    assert message.format(file=file) in complaint(distill(file, tmp_path / "run", *more))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", [kind for kind in TABLES if TABLES[kind][0] != "t.zip"])
def test_a_table_of_a_task_is_refused_by_name(tmp_path, kind):
    name, content, message = TABLES[kind]
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    file = tasks / name
    (tasks / "s.csv").write_bytes(text())
    file.write_bytes(content)
    said = complaint(invoke("groups", "--data", tasks, "--n-groups", 2, "--out", tmp_path / "run"))
    assert message.format(file=file) in said or f"{file} must have the columns of" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("change", [lambda t: t.replace(b"\n", b"\r"), lambda t: t.replace(b"\n", b"\r", 9)])
def test_carriage_returns_alone_end_lines(tmp_path, change):
    for name, content in (("old.csv", change(text())), ("new.csv", text())):
        (tmp_path / name).write_bytes(content)
        assert distill(tmp_path / name, tmp_path / f"{name}-run").exit_code == 0
    old, new = (pd.read_csv(tmp_path / f"{name}-run" / "selected.csv") for name in ("old.csv", "new.csv"))
    pd.testing.assert_frame_equal(old, new)


def test_a_very_long_row_is_read(tmp_path):
    frame().assign(label=["z" * 1_500_000, *"z" * 39]).to_csv(tmp_path / "t.csv", index=False)
    assert distill(tmp_path / "t.csv", tmp_path / "run", "--ignore", "label").exit_code == 0


@pytest.mark.parametrize("name", ["t.csv.gz", "t.zip"])
def test_what_unpacks_to_far_more_is_refused(tmp_path, monkeypatch, name):
    content = b"a,b,c,price\n" + b"1,2,3,4\n" * 200_000
    (tmp_path / name).write_bytes(gzip.compress(content) if "gz" in name else as_zip(content, zipfile.ZIP_DEFLATED))
    monkeypatch.setattr("mixbin.data.unpacking.FREE_BYTES", 10_000)
    said = complaint(distill(tmp_path / name, tmp_path / "run"))
    assert f"{tmp_path / name} must unpack to at most 200 times its size, got more than " in said


def test_dates_that_python_does_not_have_are_given_back(tmp_path):
    late = pa.array([4_000_000] * 40, pa.int32()).cast(pa.date32())
    table = pa.Table.from_pandas(frame(), preserve_index=False).append_column("day", late)
    (tmp_path / "t.parquet").write_bytes(as_parquet(table))
    assert distill(tmp_path / "t.parquet", tmp_path / "run", "--ignore", "day").exit_code == 0
    written = parquet.read_table(tmp_path / "run" / "selected.parquet")
    assert set(written.column("day").cast(pa.int32()).to_pylist()) == {4_000_000}
    assert "12921" in (tmp_path / "run" / "report.html").read_text()
    # As a feature, it has parts as other dates have.
    assert distill(tmp_path / "t.parquet", tmp_path / "used").exit_code == 0
    assert json.loads((tmp_path / "used" / "model.json").read_text())["encoding"]["features"]["day.year"]["if_missing"] == 12921


def test_a_column_of_many_digits_is_none(tmp_path):
    (tmp_path / "t.csv").write_bytes(text())
    got = invoke("distill", tmp_path / "t.csv", "--target", "9" * 5000, *QUICK, "--out", tmp_path / "run")
    assert "--target must be a column of" in complaint(got)


# What is no file.


TO_ROWS = ["distill", "{file}", "--target", "0", *QUICK]


@pytest.mark.parametrize("args", [TO_ROWS, [*TO_ROWS, "--workers", "1"], ["groups", "--data", "{file}"]])
def test_a_pipe_is_refused(tmp_path, args):
    file = tmp_path / "pipe.csv"
    os.mkfifo(file)
    got = process(*(word.format(file=file) for word in args), "--out", tmp_path / "run")
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr == f"mixbin: {file} must be a file, got a pipe; save what it gives to a file and name that\n"


def test_a_device_is_refused(tmp_path):
    said = complaint(distill("/dev/null", tmp_path / "run"))
    assert "/dev/null must be a file, got a device; save what it gives to a file" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(text())
    (tmp_path / "t.csv").chmod(stat.S_IWUSR)
    said = complaint(distill(tmp_path / "t.csv", tmp_path / "run"))
    assert f"{tmp_path / 't.csv'} cannot be read (Permission denied); check the path" in said


LONG = "x" * 300


@pytest.mark.parametrize(
    "args",
    [
        ["distill", LONG, "--target", "price", *QUICK],
        ["distill", LONG, "--target", "price", *QUICK, "--workers", "1"],
        ["distill", "{train}", "--target", "price", *QUICK, "--test", LONG],
        ["groups", "--data", LONG],
    ],
)
def test_a_name_that_is_too_long_is_refused(tmp_path, args):
    (tmp_path / "t.csv").write_bytes(text())
    said = complaint(invoke(*(arg.format(train=tmp_path / "t.csv") for arg in args), "--out", tmp_path / "run"))
    assert f"{LONG} cannot be read (File name too long); check the path" in said


def test_an_argument_that_is_not_utf8_is_refused(tmp_path):
    """Before the run: its page could not be written."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/t\xff.csv")
    Path(name).write_bytes(text())
    assert r"every argument must be UTF-8, got" in complaint(distill(name, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_names_do_not_steer_the_terminal(tmp_path):
    assert "\\x1b[2Jnothing.csv cannot be read" in complaint(distill(tmp_path / "\x1b[2Jnothing.csv", tmp_path / "run"))


# A folder of Parquet.


@pytest.fixture
def pieces(tmp_path):
    folder = tmp_path / "pieces"
    folder.mkdir()
    for i in range(2):
        (folder / f"{i}.parquet").write_bytes(as_parquet(frame(40, i)))
    return folder


def test_a_folder_with_a_name_twice_is_refused(pieces):
    (pieces / "1.parquet").write_bytes(as_parquet(columns("a", "b", "c", "c", "price")))
    with pytest.raises(InvalidInput, match=r"1\.parquet must name its columns differently, got 'c' twice; rename one"):
        ParquetFolder(pieces, "price")


def test_a_folder_with_a_bad_page_is_refused(pieces, tmp_path):
    (pieces / "1.parquet").write_bytes(b"PAR1" + bytes(300) + as_parquet(frame())[304:])
    opened = ParquetFolder(pieces, "price")
    with pytest.raises(InvalidInput, match=r"1\.parquet cannot be read as Parquet \(.*\); write it anew or take it out"):
        [list(PieceRows(piece, NAMES, np.dtype(float)).parts()) for piece in opened.pieces]
    got = process("distill", pieces, "--target", "price", *QUICK, "--workers", 1, "--out", tmp_path / "run")
    assert (got.returncode, got.stdout, got.stderr.count("\n")) == (2, "", 1)
    assert got.stderr.startswith(f"mixbin: {pieces / '1.parquet'} cannot be read as Parquet (")


# Where to write.


@pytest.mark.parametrize("name", [LONG, "{file}/run", "/proc/nothing/run", "/sys/x"])
@pytest.mark.parametrize("command", ["distill", "groups", "demo", "reproduce"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, command, name):
    file = tmp_path / "t.csv"
    file.write_bytes(text())
    out = name.format(file=file)
    args = {
        "distill": ["distill", file, "--target", "price", *QUICK],
        "groups": ["groups", "--synthetic", "equal", "--tasks", 5, "--samples", 5, "--features", 4, "--n-groups", 2],
        "demo": ["demo"],
        "reproduce": ["reproduce", "table1"],
    }
    said = complaint(invoke(*args[command], "--out", out))
    assert f"--out '{out}' cannot be written to (" in said
    assert said.endswith("); choose another folder\n")


def test_a_page_of_a_name_that_is_too_long():
    assert f"{LONG} cannot be read (File name too long)" in complaint(invoke("report", LONG))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that has ended, and how it was called."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "t.csv").write_bytes(text())
    assert distill(folder / "t.csv", folder / "run").exit_code == 0
    return folder / "t.csv", folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    """The same in a folder of its own."""
    file, out = finished
    shutil.copytree(out, tmp_path / "run")
    return file, tmp_path / "run"


GONE = object()


def changed(file, **entries):
    """A JSON file with other entries."""
    there = json.loads(file.read_text()) | entries
    file.write_text(json.dumps({name: value for name, value in there.items() if value is not GONE}))


SHAPES = {
    "deep": "[" * 100_000,
    "a list": "[1]",
    "a text": '"x"',
    "nothing": "null",
    "cut": '{"train": ',
    "no text": "\udcff\udcfe",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_damaged_methods_json_is_refused(run, shape):
    file, out = run
    (out / "methods.json").write_text(SHAPES[shape], errors="surrogateescape")
    assert f"{out / 'methods.json'} is not what mixbin wrote there (" in complaint(distill(file, out, "--resume"))
    assert f"{out / 'methods.json'} is not " in complaint(invoke("report", out))
    said = complaint(invoke("report", out.parent))
    assert f"{out / 'methods.json'} is not " in said


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("train", GONE),
        ("train", [1]),
        ("rows", GONE),
        ("rows", None),
        ("rows", "x"),
        ("methods", GONE),
        ("methods", {"a": 1}),
        ("methods", ["x"]),
        ("identity", [1]),
        ("identity", None),
        ("identity", GONE),
        ("test_rows", {}),
        ("budget", "x"),
    ],
)
def test_other_entries_of_methods_json_are_refused(run, entry, value):
    file, out = run
    changed(out / "methods.json", **{entry: value})
    said = complaint(distill(file, out, "--resume"))
    assert f"{out / 'methods.json'} is not what mixbin wrote there (" in said or "which does not say its mixbin, data" in said
    assert f"{out} has a file that is not as mixbin left it (" in complaint(invoke("report", out))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_damaged_identity_is_refused(finished, tmp_path, shape):
    file, _ = finished
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    begun = tmp_path / "run" / "checkpoint" / "identity.json"
    begun.write_text(SHAPES[shape], errors="surrogateescape")
    said = complaint(distill(file, tmp_path / "run", "--resume"))
    assert f"{begun} is not what mixbin wrote there (" in said


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_a_checkpoint_that_is_a_file_is_from_no_run(finished, tmp_path, more):
    file, _ = finished
    (tmp_path / "checkpoint").write_text("mine")
    said = complaint(distill(file, tmp_path, *more))
    assert f"--out '{tmp_path}' has a checkpoint that is from no run; choose another folder" in said
    assert (tmp_path / "checkpoint").read_text() == "mine"


@pytest.mark.parametrize(
    ("clock", "message"),
    [("[]", "is not what mixbin wrote there"), ("{}", "it has no seconds"), ('{"seconds": "x"}', "it has no seconds")],
)
def test_a_damaged_clock_is_refused(run, clock, message):
    file, out = run
    identity = json.loads((out / "methods.json").read_text())["identity"]
    (out / "checkpoint").mkdir()
    shutil.move(out / "result.npz", out / "checkpoint" / "relax.npz")
    for name in ("methods.json", "model.json", "trace.csv", "selected.csv", "report.html"):
        (out / name).unlink()
    (out / "checkpoint" / "identity.json").write_text(json.dumps(identity))
    (out / "checkpoint" / "relax.json").write_text(clock)
    said = complaint(distill(file, out, "--resume"))
    assert f"{out / 'checkpoint' / 'relax.json'} is not what" in said
    assert message in said


def test_the_result_of_another_problem_is_not_gone_on_with(run, tmp_path):
    file, out = run
    (tmp_path / "less.csv").write_bytes(text(30))
    assert distill(tmp_path / "less.csv", tmp_path / "less").exit_code == 0
    identity = json.loads((out / "methods.json").read_text())["identity"]
    begun = tmp_path / "begun" / "checkpoint"
    begun.mkdir(parents=True)
    (begun / "identity.json").write_text(json.dumps(identity))
    shutil.copy(tmp_path / "less" / "result.npz", begun / "relax.npz")
    (begun / "relax.json").write_text('{"seconds": 1}')
    said = complaint(distill(file, tmp_path / "begun", "--resume"))
    assert f"{begun / 'relax.npz'} is not what mixbin wrote there (it is the result of another problem)" in said


@pytest.mark.parametrize("change", [lambda it: it[: len(it) // 2], lambda it: b"", lambda it: it[:200] + b"\xff" * 9 + it[209:]])
def test_a_damaged_result_has_no_page(run, change):
    _, out = run
    whole = (out / "result.npz").read_bytes()
    (out / "result.npz").write_bytes(change(whole))
    page = (out / "report.html").read_bytes()
    assert f"{str(out / 'result.npz')!r} is not a saved mixbin result, or is damaged" in complaint(invoke("report", out))
    assert (out / "report.html").read_bytes() == page


@pytest.mark.parametrize(("entry", "value"), [("intercept", [3]), ("target", GONE), ("scikit_learn", 3)])
def test_another_model_has_no_page(run, entry, value):
    _, out = run
    changed(out / "model.json", **{entry: value})
    said = complaint(invoke("report", out))
    assert f"{out} has a file that is not as mixbin left it (" in said


# Archives of tasks.


def member(shape="(3, 6, 4)", dtype="<f8", body=bytes(576), magic=b"\x93NUMPY\1\0"):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return magic + len(head).to_bytes(2, "little") + head.encode() + body


def tasks(kind=zipfile.ZIP_STORED, **members):
    out, whole = io.BytesIO(), {"X": member(), "y": member("(3, 6)", body=bytes(144))} | members
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in whole.items():
            archive.writestr(f"{name}.npy", content)
    return out.getvalue()


def first_header(data, place, value):
    """With a byte changed in both headers of the first member."""
    data = bytearray(data)
    data[place] = data[data.index(b"PK\1\2") + place + 2] = value
    return bytes(data)


CANNOT = "X of {file} cannot be read ("
ARCHIVES = {
    "a huge shape": (tasks(X=member("(10000000, 1000000, 1000)", body=b"")), CANNOT + "it says to have the shape (10000000,"),
    "an overflowing shape": (tasks(X=member(f"({2**63 - 1}, {2**63 - 1}, 3)")), CANNOT + "it says to have the shape"),
    "negative sides": (tasks(X=member("(-3, -6, 4)")), CANNOT + "it says to have the shape (-3, -6, 4)"),
    "no shape": (tasks(X=member("None")), CANNOT + "shape is not valid"),
    "a short body": (tasks(X=member(body=bytes(9))), CANNOT + "it says to have the shape (3, 6, 4), which 137 bytes"),
    "no bytes each": (tasks(X=member("(30000000000, 6, 4)", "|V0")), CANNOT + "it says to have the shape"),
    "another dtype": (tasks(X=member(dtype="nonsense")), CANNOT + "descr is not a valid dtype descriptor"),
    "no array": (tasks(X=b"hello there"), CANNOT + "the magic string is not correct"),
    "an empty member": (tasks(X=b""), CANNOT + "EOF"),
    "a pickle": (
        tasks(X=member(dtype="|O", body=b"cos\nsystem\n(S'true'\ntR.")),
        "X of {file} must be a plain array, got pickled",
    ),
    "pickled labels": (
        tasks(labels=member("(4,)", "|O", b"cos\n.")),
        "labels of {file} must be a plain array, got pickled objects",
    ),
    "one huge array": (member("(1000000000, 100000)", body=b""), "{file} must hold several arrays by name, got one array"),
    "names elsewhere": (tasks().replace(b"X.npy", b"../.n"), "{file} must hold the arrays X and y, but lacks X; it has '../.n'"),
    "encrypted": (first_header(tasks(), 6, 1), CANNOT + "File 'X.npy' is encrypted"),
    "another method": (first_header(tasks(), 8, 99), CANNOT + "That compression method is not supported"),
    "another version": (
        first_header(tasks(), 4, 99),
        "{file} must be a NumPy archive (.npz) or a folder of CSV files, got neither",
    ),
    "damaged LZMA": (
        tasks(zipfile.ZIP_LZMA)[:60] + b"\xff" * 9 + tasks(zipfile.ZIP_LZMA)[69:],
        CANNOT + "Corrupt input data",
    ),
    "another checksum": (tasks().replace(bytes(500), bytes(499) + b"\1", 1), CANNOT + "Bad CRC-32 for file 'X.npy'"),
    "not a zip": (b"hello", "{file} must be a NumPy archive (.npz) or a folder of CSV files, got neither; write it with"),
    "surrogates": (
        tasks(feature_names=member("(4,)", "<U1", b"\x00\xd8\0\0a\0\0\0b\0\0\0c\0\0\0")),
        "feature_names of {file} must be text that UTF-8 can hold",
    ),
    "beyond Unicode": (
        tasks(feature_names=member("(4,)", "<U1", b"\xff\xff\xff\x7fa\0\0\0b\0\0\0c\0\0\0")),
        "feature_names of {file} must be text that UTF-8 can hold",
    ),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_of_tasks_is_refused_by_name(tmp_path, kind):
    data, message = ARCHIVES[kind]
    file = tmp_path / "t.npz"
    file.write_bytes(data)
    said = complaint(invoke("groups", "--data", file, "--n-groups", 2, "--out", tmp_path / "run"))
    assert message.format(file=file) in said
    assert not (tmp_path / "run").exists()


def test_an_array_that_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.npz").write_bytes(tasks(zipfile.ZIP_DEFLATED, X=member("(3, 6, 4000)", body=bytes(576_000))))
    monkeypatch.setattr("mixbin.data.unpacking.FREE_BYTES", 10_000)
    said = complaint(invoke("groups", "--data", tmp_path / "t.npz", "--n-groups", 2, "--out", tmp_path / "run"))
    assert f"X of {tmp_path / 't.npz'} must unpack to at most 200 times its size, got 576,128 bytes from " in said


def test_signs_that_the_font_lacks_are_no_warning(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(3, 6, 4)), "y": rng.normal(size=(3, 6)), "feature_names": np.array(["中", "b", "c", "\x1b"])}
    np.savez(tmp_path / "t.npz", **arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = invoke("groups", "--data", tmp_path / "t.npz", "--n-groups", 2, "--max-evaluations", 4, "--out", tmp_path / "run")
    assert (got.exit_code, got.stderr) == (0, "")


# Runs that are not this one.


def identity_with(pieces, out, test):
    """Of ``mixbin distill`` on a folder, with its rows in this process."""
    options = DistillOptions(
        train=pieces, target="price", budget="0.2", out=out, test=[test], alpha=0.01, method=Method.RELAX, max_evaluations=8
    )
    study = parquet_study.ParquetRegression(options)
    study.load()
    return study.identity()


def test_the_identity_of_a_folder_has_the_test_rows(pieces, tmp_path):
    """By what they are, not by where or when."""
    for i in (2, 3):
        (tmp_path / f"{i}.parquet").write_bytes(as_parquet(frame(30, i)))
    shutil.copy(tmp_path / "2.parquet", tmp_path / "copy.parquet")
    os.utime(tmp_path / "copy.parquet", (1, 1))
    one, copy, other = (identity_with(pieces, tmp_path / "run", tmp_path / f"{name}.parquet") for name in ("2", "copy", "3"))
    assert one == copy
    assert {name for name in one if one[name] != other[name]} == {"test"}


def test_another_test_file_of_a_folder_is_not_gone_on_with(pieces, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_study, "local_workers", lambda workers, memory_limit: nullcontext())
    for i in (2, 3):
        (tmp_path / f"{i}.parquet").write_bytes(as_parquet(frame(30, i)))
    args = ["distill", pieces, "--target", "price", *QUICK, "--workers", 1, "--out", tmp_path / "run", "--json"]
    got = invoke(*args, "--test", tmp_path / "2.parquet")
    assert got.exit_code == 0, got.stderr
    said = complaint(invoke(*args, "--test", tmp_path / "3.parquet", "--resume"))
    assert "holds a run that differs in test; repeat the command it was begun with" in said


def test_rows_from_another_file_are_another_run(run, tmp_path):
    """The same rows, split off before: in the files they have other numbers."""
    file, _ = run
    out = tmp_path / "split"
    assert distill(file, out, "--judge", "validation").exit_code == 0
    held = json.loads((out / "methods.json").read_text())["validation_split"]
    frame().drop(index=held).to_csv(tmp_path / "train.csv", index=False)
    frame().iloc[held].to_csv(tmp_path / "val.csv", index=False)
    said = complaint(
        distill(tmp_path / "train.csv", out, "--judge", "validation", "--validation", tmp_path / "val.csv", "--resume")
    )
    assert "holds a run that differs in validation; repeat the command" in said


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classified")
    for i, name in enumerate(("train", "val", "test", "other")):
        # So many rows that their means are exact: moved rows are the same once they are centred.
        frame(32, i).assign(price=np.arange(32) % 2).to_csv(folder / f"{name}.csv", index=False)
    table = pd.read_csv(folder / "train.csv").assign(a=lambda t: t["a"] + 8)
    table.to_csv(folder / "moved.csv", index=False)
    pd.read_csv(folder / "val.csv").assign(a=lambda t: t["a"] + 8).to_csv(folder / "moved-val.csv", index=False)
    options = {"--target": "price", "--task": "classification", "--max-evaluations": "6", "--method": "relax"}
    options |= {"--budget": "16", "--out": str(folder / "run")}

    def go(train="train", val="val", **change):
        given = options | {"--validation": folder / f"{val}.csv"} | {f"--{name}": value for name, value in change.items()}
        return invoke("distill", folder / f"{train}.csv", *(word for pair in given.items() for word in pair), "--resume")

    assert go().exit_code == 0
    return go, folder


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"train": "moved", "val": "moved-val"}, "data"),
        ({"train": "other"}, "data"),
        ({"budget": "20"}, "budget"),
        ({"alpha": "3"}, "alpha"),
        ({"test": "test.csv"}, "test"),
        ({"seed": "1"}, "seed"),
    ],
)
def test_another_classification_is_not_gone_on_with(classified, change, what):
    go, folder = classified
    change = {name: folder / value if name == "test" else value for name, value in change.items()}
    said = complaint(go(**change))
    assert "holds a run that differs in" in said
    assert what in said.split("differs in")[1].split(";")[0].replace(",", "").split()


@pytest.mark.parametrize("lost", ["validation", "data"])
def test_a_run_of_an_earlier_version(run, lost):
    """It is not gone on with, since it does not say all that its figures depend on; its page can be written anew."""
    file, out = run
    summary = json.loads((out / "methods.json").read_text())
    identity = {name: value for name, value in summary["identity"].items() if name != lost}
    changed(out / "methods.json", identity=identity)
    said = complaint(distill(file, out, "--resume"))
    assert f"holds a run of an earlier version, which does not say its {lost}; choose another folder" in said
    if lost == "validation":
        assert invoke("report", out).exit_code == 0


# What the system refuses.


@pytest.mark.parametrize("call", [1, 3, 7])
def test_a_full_disk_is_one_line(finished, tmp_path, monkeypatch, call):
    """Nothing is half-written, and with space the run goes on."""
    file, whole = finished
    calls, real = [], os.fsync

    def fsync(handle):
        calls.append(handle)
        if len(calls) >= call:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        said = complaint(distill(file, tmp_path / "run"), code=1)
    assert "cannot be written (No space left on device); free some space" in said
    left = [it.name for it in (tmp_path / "run").rglob("*") if it.is_file()]
    assert "methods.json" not in left
    assert not [name for name in left if name.endswith(".part")]
    assert distill(file, tmp_path / "run", "--resume").exit_code == 0
    assert (tmp_path / "run" / "selected.csv").read_bytes() == (whole / "selected.csv").read_bytes()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(errno.EROFS, "Read-only file system", "/x/y"),
            "'/x/y' cannot be read or written (Read-only file system); check",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "a file cannot be read or written (No space left on device); free"),
        (MemoryError("Unable to allocate 7.28 TiB"), "there is not enough memory (Unable to allocate 7.28 TiB); use less data"),
        (MemoryError(), "there is not enough memory; use less data, or a machine with more"),
    ],
)
def test_what_the_system_refuses_is_one_line(finished, tmp_path, monkeypatch, error, message):
    file, _ = finished

    def refused(*_, **__):
        raise error

    monkeypatch.setattr("mixbin.studies.distillation.regression.RidgeDistillation", refused)
    assert message in complaint(distill(file, tmp_path / "run"), code=1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("args", [["--version"], ["distill", "{file}", "--target", "price", *QUICK, "--out", "{out}", "--json"]])
def test_nobody_takes_the_output(run, args):
    file, out = run
    with open("/dev/full", "w") as full:
        words = [word.format(file=file, out=out) for word in args]
        got = process(*words, *(["--resume"] if "--json" in words else []), stdout=full)
    assert got.returncode == 1
    assert (
        got.stderr
        == "mixbin: a file cannot be read or written (No space left on device); free some space and repeat the command\n"
    )


# Whatever the bytes are.


def damaged(data, rng):
    """With one to three places flipped, overwritten, cut out or put in, or without its end."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        i, n = int(rng.integers(len(data) or 1)), int(rng.integers(1, 9))
        kind = rng.integers(5)
        if kind == 0 and data:
            data[i] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[i : i + n] = rng.choice([b"\xff", b"\0", b'"', b"[", b"-"]) * n
        elif kind == 2:
            data[i:i] = rng.bytes(n)
        elif kind == 3:
            del data[i : i + n]
        else:
            del data[i:]
    return bytes(data)


def whole_files(out):
    rng = np.random.default_rng(0)
    packed = io.BytesIO()
    np.savez_compressed(packed, X=rng.normal(size=(2, 4, 3)), y=rng.normal(size=(2, 4)), labels=np.array([0, 1, 1]))
    files = {"t.csv": text(), "t.csv.gz": gzip.compress(text()), "t.zip": as_zip(kind=zipfile.ZIP_DEFLATED)}
    files |= {"t.parquet": as_parquet(frame()), "t.npz": packed.getvalue()}
    return files | {name: (out / name).read_bytes() for name in ("methods.json", "result.npz", "model.json")}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.zip", "t.parquet", "t.npz", "methods.json", "result.npz", "model.json"])
def test_damaged_files_end_in_one_line(finished, tmp_path, name):
    file, whole = finished
    content = whole_files(whole)[name]
    for i in range(10 if name.startswith("t.") else 5):
        data = damaged(content, np.random.default_rng([i, len(name)]))
        out = tmp_path / f"run{i}"
        if name.startswith("t."):
            (tmp_path / name).write_bytes(data)
            groups = ["groups", "--data", tmp_path / name, "--n-groups", 2, "--max-evaluations", 3, "--out", out]
            got = [invoke(*groups) if name == "t.npz" else distill(tmp_path / name, out)]
        else:
            shutil.copytree(whole, out)
            (out / name).write_bytes(data)
            got = [distill(file, out, "--resume"), *([invoke("report", out)] if i % 2 == 0 else [])]
        for it in got:
            if it.exit_code:
                complaint(it)
            else:
                assert it.stderr == ""
