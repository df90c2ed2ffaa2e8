"""Odd files and options for the command: it ends with 0, or with 1 or 2 and one line on stderr that begins with "mixbin: ".

``pytest --fuzz N`` tries a fortieth of N examples here, drawn anew.
"""

import io
import shutil
from contextlib import chdir

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mixbin.cli import app
from tests.fuzz.amount import examples
from tests.fuzz.strategies import in_time

pytestmark = pytest.mark.slow

NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3.5",
    "1e300",
    "-1e300",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "",
    " ",
    "x",
    "1,5",
    "0x1",
    "1_0",
    "٣",
    "-0",
    "9" * 400,
]
BUDGETS = [
    "10%",
    "50%",
    "0.5",
    "3",
    "1",
    "100%",
    "1.0",
    "0",
    "-1",
    "200%",
    "0%",
    "nan%",
    "%",
    "inf",
    "1e-300",
    "5e",
    "٣",
    "²",
    "9" * 400,
    "10 %",
]
TARGETS = ["y", "-1", "0", "1", "3", "-9", "99", "a", "nope", "", " ", "Y", "1.0", "²", "٣", "9" * 400, "a\nb", "ü"]


def numbers():
    return st.one_of(st.sampled_from(NUMBERS), st.integers(-3, 9).map(str), st.floats(0, 1).map(repr))


# Files.


def table(draw, quirks=2):
    """A table as people have them: numbers, and in some columns or cells something else."""
    rng = np.random.default_rng(draw(st.integers(0, 3)))
    n = draw(st.sampled_from([12, 12, 8, 3, 2, 1, 0])) if quirks else 12
    X = rng.normal(size=(n, 3)).round(3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=(X @ [1.0, -2.0, 0.5]).round(3))
    for quirk in draw(st.lists(st.sampled_from(sorted(QUIRKS)), max_size=quirks)):
        frame = QUIRKS[quirk](frame)
    return frame


def cell(value, column="b"):
    def change(frame):
        if len(frame) == 0 or column not in frame.columns:
            return frame
        frame = frame.astype(object)
        frame.iloc[len(frame) // 2, frame.columns.get_loc(column)] = value
        return frame

    return change


QUIRKS = {
    "missing": cell(None),
    "nan": cell("nan"),
    "inf": cell("inf"),
    "text": cell("abc"),
    "huge": cell(1e300),
    "too huge": cell("1e999"),
    "tiny": cell(1e-300),
    "a quote": cell('say "hi"'),
    "a line in a cell": cell("two\nlines"),
    "a zero byte": cell("a\x00b"),
    "a missing target": cell(None, "y"),
    "text for a target": cell("abc", "y"),
    "spaces": cell(" 1.5 "),
    "classes": lambda frame: frame.assign(y=np.where(np.arange(len(frame)) % 3 == 0, "no", "yes")),
    "one class": lambda frame: frame.assign(y="yes"),
    "whole classes": lambda frame: frame.assign(y=np.arange(len(frame)) % 2),
    "constant": lambda frame: frame.assign(b=2.0),
    "all huge": lambda frame: frame.assign(b=1e200, a=-1e200),
    "the same": lambda frame: frame.assign(b=frame["a"] if "a" in frame.columns else 1.0),
    "dates": lambda frame: frame.assign(d=pd.date_range("2020", periods=len(frame))),
    "truth values": lambda frame: frame.assign(b=True),
    "only a target": lambda frame: frame.iloc[:, -1:],
    "odd names": lambda frame: frame.rename(columns={"a": "", "b": "1", "c": "ü \u2028"}),
    "numbers for names": lambda frame: frame.set_axis([str(j) for j in range(frame.shape[1])], axis=1),
    "markup in a name": lambda frame: frame.rename(columns={"a": "<b>[bold]{{x}}"}),
}


def csv_bytes(draw, frame, spoiled):
    if not spoiled:
        return frame.to_csv(index=False, sep=draw(st.sampled_from([",", ";", "\t"]))).encode()
    out = frame.to_csv(
        index=draw(st.sampled_from([False, False, False, True])),
        header=draw(st.sampled_from([True, True, False])),
        sep=draw(st.sampled_from([",", ",", ";", "\t", "|"])),
        lineterminator=draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])),
    )
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    raw = out.encode(encoding, "replace")
    spoil = draw(
        st.sampled_from(
            ["", "", "", "cut", "empty", "blank lines", "a long row", "a short row", "not unicode", "one quote", "zeros"]
        )
    )
    end = "\n".encode(encoding)
    changes = {
        "cut": raw[: len(raw) * 2 // 3],
        "empty": b"",
        "blank lines": end + raw + end + end,
        "a long row": raw + "1,2,3,4,5,6,7\n".encode(encoding),
        "a short row": raw + "1,2\n".encode(encoding),
        "not unicode": raw + b"\xff\xfe\x80,1\n",
        "one quote": raw + b'"',
        "zeros": bytes(50),
    }
    return changes.get(spoil, raw)


def write_table(draw, path, frame, spoiled):
    """A file in one of the forms that the command reads, or one that only looks like it."""
    kind = draw(st.sampled_from(["csv", "csv", "csv", "parquet", "bytes" if spoiled else "csv"]))
    if kind == "bytes":
        path.write_bytes(draw(st.sampled_from([b"", b"PAR1", b"PK\x03\x04", b"\x1f\x8b\x08", b"PAR1" + bytes(60) + b"PAR1"])))
        return path
    if kind == "parquet":
        try:
            frame.to_parquet(path)
            return path
        except (TypeError, ValueError, OverflowError):
            pass
    path.write_bytes(csv_bytes(draw, frame, spoiled))
    return path


# Options.


def odd_places(draw, *places):
    """Where an example is odd: in two of these places at most, so that some examples run to their end."""
    return draw(st.sets(st.sampled_from(places), max_size=2))


def options(draw, table):
    """A few options, each a good value or an odd one."""
    args = []
    for name in draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=3, unique=True)):
        value = draw(table[name])
        args += [name] if value is True else [name, value]
    return args


DISTILL = {
    "--alpha": numbers(),
    "--method": st.sampled_from(["penalize", "top-k", "simple", "relax", "all", "magic", ""]),
    "--ignore": st.sampled_from(TARGETS),
    "--seed": numbers(),
    "--validation-fraction": numbers(),
    "--task": st.sampled_from(["regression", "classification", "classification", "other"]),
    "--header": st.just(True),
    "--no-header": st.just(True),
    "--resume": st.just(True),
    "--json": st.just(True),
    "--memory-limit": st.sampled_from(["2GB", "x", "-1"]),
    "--nonsense": st.just(True),
}
GROUPS = {
    "--n-groups": st.sampled_from(["1", "2", "3", "0", "-1", "99", "x"]),
    "--lam": numbers(),
    "--method": st.sampled_from(["penalize", "top-k", "simple", "relax", "all", "magic"]),
    "--seed": numbers(),
    "--validation-fraction": numbers(),
    "--target": st.sampled_from(TARGETS),
    "--ignore": st.sampled_from(TARGETS),
    "--no-header": st.just(True),
    "--a": numbers(),
    "--resume": st.just(True),
    "--json": st.just(True),
}
MADE = {
    "--synthetic": st.sampled_from(["equal", "inequal", "random", "other"]),
    "--tasks": st.sampled_from(["0", "1", "2", "x"]),
    "--samples": st.sampled_from(["1", "2", "0"]),
    "--features": st.sampled_from(["1", "2", "7", "0"]),
    "--a": numbers(),
}
REPRODUCE = {
    "--solver": st.sampled_from(["magic", ""]),
    "--runs": st.sampled_from(["0", "-1", "x", "1.5"]),
    "--steps": st.sampled_from(["0", "-1", "x", "10"]),
    "--budget": st.sampled_from(["0", "15", "x", "", "nan", "²"]),
    "--jobs": st.sampled_from(["0", "-1", "x"]),
}
DEMO = {
    "--budget": st.sampled_from(["0", "-1", "200%", "x", "", "nan", "²", "9" * 400, "5e"]),
    "--alpha": st.sampled_from(["0", "-1", "nan", "inf", "x", ""]),
    "--seed": st.sampled_from(["-1", "x", "1.5", ""]),
}


def few_evaluations(draw, spoiled):
    """What makes every run short."""
    return ["--max-evaluations", draw(st.sampled_from(["1", "0", "-3", "x"] if spoiled else ["2", "5", "12"]))]


OUTS = {"deep": "a/b/c", "zero byte": "a\x00b", "odd": "ü \n[bold]", "below a file": "file/out", "dots": "x/../../example/y"}


def out_folder(draw, folder, spoiled):
    """New, or empty, a file, with something in it, or in a place where there can be none."""
    out = folder / "out"
    kind = draw(st.sampled_from(["empty", "full", "file", "none", *OUTS])) if spoiled else "new"
    if kind in ("empty", "full"):
        out.mkdir()
    if kind == "full":
        (out / "notes.txt").write_text("mine")
    if kind == "file":
        out.write_text("mine")
    (folder / "file").write_text("mine")
    if kind == "none":
        return ["--out", ""]
    return ["--out", f"{folder}/{OUTS[kind]}" if kind in OUTS else str(out)]


def distill(draw, folder):
    odd = odd_places(draw, "train", "train", "target", "budget", "options", "evaluations", "out", "other tables")
    classify = draw(st.sampled_from([False, False, True]))
    frame = table(draw, quirks=2 if "train" in odd else 0)
    if classify:
        frame = QUIRKS["classes"](frame)
    train = folder / draw(st.sampled_from(["train.csv", "train.parquet", "train", "train.csv.gz"]))
    write_table(draw, train, frame, "train" in odd)
    # The last column has no name where the file has no header.
    args = ["distill", str(train), "--target", draw(st.sampled_from(TARGETS)) if "target" in odd else "-1"]
    if not classify or draw(st.booleans()):
        args += ["--budget", draw(st.sampled_from(BUDGETS if "budget" in odd else ["3", "50%", "1"]))]
    args += ["--task", "classification"] if classify else []
    for option in ("--validation", "--test"):
        if draw(st.integers(0, 3)) == 0:
            other = table(draw, quirks=1 if "other tables" in odd else 0)
            if classify:
                other = QUIRKS["classes"](other)
            args += [option, str(write_table(draw, folder / f"{option}.csv", other, "other tables" in odd))]
    args += options(draw, DISTILL) if "options" in odd else []
    return args + few_evaluations(draw, "evaluations" in odd) + out_folder(draw, folder, "out" in odd)


def archive(draw, path, spoiled):
    rng = np.random.default_rng(draw(st.integers(0, 3)))
    X = rng.normal(size=(3, 6, 4))
    parts = {"X": X, "y": X.sum(axis=2), "feature_names": np.array(list("abcd"))}
    if draw(st.booleans()):
        parts |= {"X_val": X[:, :3], "y_val": parts["y"][:, :3]}
    changes = {
        "nan": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 3, np.nan, a) if a.dtype.kind == "f" else a,
        "text": lambda a: a.astype(str),
        "objects": lambda a: a.astype(object),
        "complex": lambda a: a.astype(complex) if a.dtype.kind == "f" else a,
        "float16": lambda a: a.astype(np.float16) if a.dtype.kind == "f" else a,
        "flat": lambda a: a.ravel(),
        "empty": lambda a: a[:0],
        "one": lambda a: a[:1],
        "huge": lambda a: a * 1e300 if a.dtype.kind == "f" else a,
        "dates": lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    }
    for name in draw(st.sets(st.sampled_from(sorted(parts)), max_size=1)) if spoiled else ():
        parts[name] = changes[draw(st.sampled_from(sorted(changes)))](parts[name])
    if draw(st.integers(0, 5)) == 0:
        extra = {"labels": np.array([0, 0, 1, 1]), "theta": np.eye(4), "coef": np.zeros((3, 4)), "x": np.zeros(2)}
        name = draw(st.sampled_from(sorted(extra)))
        parts[name] = draw(st.sampled_from([extra[name], extra[name] * np.nan, extra[name][:1]])) if spoiled else extra[name]
    if spoiled and draw(st.integers(0, 5)) == 0:
        del parts[draw(st.sampled_from(sorted(parts)))]
    out = io.BytesIO()
    np.savez(out, **parts)
    raw = out.getvalue()
    path.write_bytes(draw(st.sampled_from([raw, raw, raw, raw[: len(raw) // 2], b"", b"PK\x03\x04"])) if spoiled else raw)
    return path


def task_folder(draw, path, spoiled):
    path.mkdir()
    rng = np.random.default_rng(draw(st.integers(0, 3)))
    for t in range(draw(st.integers(0, 3)) if spoiled else 3):
        frame = pd.DataFrame(rng.normal(size=(6, 4)).round(3), columns=["a", "b", "c", "y"])
        bad = spoiled and draw(st.booleans())
        write_table(draw, path / f"{t}.csv", table(draw) if bad else frame, bad)
        if spoiled and draw(st.integers(0, 4)) == 0:
            write_table(draw, path / f"{t}_val.csv", frame, True)
    return path


def groups(draw, folder):
    odd = odd_places(draw, "data", "data", "options", "evaluations", "out")
    kind = draw(st.sampled_from(["archive", "archive", "folder", "made", "none" if "data" in odd else "archive"]))
    args = ["groups", "--n-groups", "2"]
    if kind == "archive":
        args += ["--data", str(archive(draw, folder / "tasks.npz", "data" in odd))]
    elif kind == "folder":
        args += ["--data", str(task_folder(draw, folder / "tasks", "data" in odd))]
    elif kind == "made":
        args += ["--synthetic", "equal", "--tasks", "3", "--samples", "4", "--features", "6"]
        args += options(draw, MADE) if "data" in odd else []
    args += options(draw, GROUPS) if "options" in odd else []
    return args + few_evaluations(draw, "evaluations" in odd) + out_folder(draw, folder, "out" in odd)


def report(draw, folder):
    """A folder of runs that may be nothing of the kind."""
    run = folder / "run"
    kind = draw(st.sampled_from(["none", "empty", "file", "odd files", "odd files", "odd files", "odd name"]))
    if kind == "file":
        run.write_text("mine")
    elif kind not in ("none", "odd name"):
        run.mkdir()
    if kind == "odd files":
        contents = [
            b"",
            b"{}",
            b"[]",
            b"null",
            b"{",
            b'{"methods": 3}',
            b"\xff\xfe",
            b"a,b\n1,2\n",
            b"PK\x03\x04",
            b"[" * 100_000,
        ]
        names = [
            "methods.json",
            "model.json",
            "result.npz",
            "selected.csv",
            "trace.csv",
            "structure.csv",
            "coef.csv",
            "command.json",
        ]
        for name in draw(st.sets(st.sampled_from(names))):
            (run / name).write_bytes(draw(st.sampled_from(contents)))
    name = draw(st.sampled_from(["", "a\x00b", "x" * 300, "\n"])) if kind == "odd name" else ""
    return ["report", name if kind == "odd name" else str(run), *(["--json"] if draw(st.booleans()) else [])]


def one_bad(draw, table):
    """At least one option that cannot be used, so that nothing long begins."""
    name = draw(st.sampled_from(sorted(table)))
    return [name, draw(table[name])]


def reproduce(draw, folder):
    what = draw(st.sampled_from([["table1"], ["table9"], [""], [], ["all", "nonsense"], ["figure1", "²"]]))
    bad = ["--runs", "0"] if what == ["table1"] else one_bad(draw, REPRODUCE)
    return ["reproduce", *what, *bad, *out_folder(draw, folder, draw(st.booleans()))]


def demo(draw, folder):
    return ["demo", *one_bad(draw, DEMO), *out_folder(draw, folder, draw(st.booleans()))]


COMMANDS = {
    "distill": distill,
    "groups": groups,
    "report": report,
    "reproduce": reproduce,
    "demo": demo,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("command")


@examples(8, 0.025)
@given(st.data())
def test_command(place, data):
    folder = place / "example"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = data.draw(st.sampled_from(["distill", "distill", "distill", "groups", "groups", "report", "reproduce", "demo"]))
    args = COMMANDS[command](data.draw, folder)
    # Where an example says --out "." it must not be the project's own folder.
    with chdir(folder), in_time():
        got = CliRunner(env={"COLUMNS": "80"}).invoke(app, args, prog_name="mixbin")
    look_at(got, args)


def look_at(got, args):
    if got.exception is not None and not isinstance(got.exception, SystemExit):
        raise got.exception
    assert got.exit_code in (0, 1, 2), args
    assert "Traceback" not in got.stderr
    if got.exit_code == 0:
        return
    assert got.stderr.startswith("mixbin: "), (args, got.stderr)
    assert len(got.stderr.splitlines()) == 1, (args, got.stderr)
    assert got.stderr.endswith("\n")
    assert len(got.stderr) < 1500, (args, got.stderr)
