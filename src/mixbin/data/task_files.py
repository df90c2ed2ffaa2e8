"""Many regression tasks from files as people have them: one NumPy archive, or a folder with a table per task.

Archives are never unpickled. What cannot be used is refused with the file, the array or column, and the remedy.
"""

import lzma
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._archive import BROKEN
from mixbin._validate import Floats, listed
from mixbin.data.reader import Reader
from mixbin.data.tasks import TaskData, Tasks, drawn_for_validation, numbered, stacked
from mixbin.data.unpacking import MOST_TIMES, check_regular, check_utf8, counting_order, first_line, most_bytes
from mixbin.errors import InvalidInput
from mixbin.problem import Indices

ENDINGS = (".csv", ".csv.gz", ".tsv", ".xlsx", ".parquet")
"""How the names of the tables in a folder end."""
PARTS = {"_val": "validation", "_test": "test"}
"""What is added to the name of a task, and the rows that such a file holds."""
ARRAYS = ("X", "y", "X_val", "y_val", "X_test", "y_test", "feature_names", "theta", "labels", "coef")
LEAST_TASKS = "one task cannot show which features belong together"


def read_archive(file: Path) -> TaskData:
    """The arrays of an .npz file: X (tasks, rows, features) and y (tasks, rows), and what else there is of ``ARRAYS``."""
    arrays = _arrays(file)
    X, y = _pair(file, arrays, "")
    n_tasks, _, n_features = X.shape
    if n_tasks < 2:
        raise InvalidInput(f"X of {file} must hold two tasks or more, got {n_tasks}; {LEAST_TASKS}")
    parts: dict[str, Tasks | None] = dict.fromkeys(PARTS)
    for name in PARTS:
        if f"X{name}" in arrays or f"y{name}" in arrays:
            A, b = _pair(file, arrays, name)
            if (A.shape[0], A.shape[2]) != (n_tasks, n_features):
                must = f"an array of shape ({n_tasks}, rows, {n_features})"
                raise check.fail(f"X{name} of {file}", A, must, "it needs the tasks and features of X")
            parts[name] = stacked(list(A), list(b))
    coef = arrays.get("coef")
    if coef is not None:
        coef = check.array(f"coef of {file}", coef, shape=(n_tasks, n_features))
    return TaskData(
        tasks=numbered(n_tasks),
        features=_feature_names(file, arrays, n_features),
        train=stacked(list(X), list(y)),
        validation=parts["_val"],
        test=parts["_test"],
        labels=_labels(file, arrays, n_features),
        coef=coef,
    )


def _arrays(file: Path) -> dict[str, NDArray[Any]]:
    """All arrays of the archive that mean something here."""
    remedy = "write it with numpy.savez(file, X=..., y=...)"
    try:
        check_regular(file)
        with file.open("rb") as stream:
            if stream.read(6) == np.lib.format.MAGIC_PREFIX:
                raise InvalidInput(f"{file} must hold several arrays by name, got one array; {remedy}")
            with zipfile.ZipFile(stream) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                _check_names(file, list(members))
                return {name: _plain(file, archive, name, members[name]) for name in ARRAYS if name in members}
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror or error}); check the path and the file") from None
    except (*BROKEN, lzma.LZMAError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{file} must be a NumPy archive (.npz) or a folder of CSV files, got neither; {remedy}") from None


def _check_names(file: Path, there: Sequence[str]) -> None:
    """Refuse an archive without X or y, or with an array whose name looks like data but is not used."""
    if missing := [name for name in ("X", "y") if name not in there]:
        has = f"it has {listed(there)}" if there else "it is empty"
        raise InvalidInput(f"{file} must hold the arrays X and y, but lacks {' and '.join(missing)}; {has}; name them so")
    if strange := [name for name in there if name not in ARRAYS and name.lower().startswith(("x", "y"))]:
        raise InvalidInput(
            f"{file} has an array {strange[0]!r} that is not known; rename it to one of {', '.join(ARRAYS[:6])}, or leave it out"
        )


def _plain(file: Path, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; its header is checked before memory is taken for it."""
    if info.file_size > most_bytes(info.compress_size):
        raise InvalidInput(
            f"{name} of {file} must unpack to at most {MOST_TIMES} times its size, got {info.file_size:,} bytes from "
            f"{info.compress_size:,}; save it with numpy.savez, which does not pack"
        )
    try:
        with archive.open(info.filename) as member:
            version = np.lib.format.read_magic(member)
            # The third version differs in the names of fields only, and arrays with fields are not used here.
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(member)
        if dtype.hasobject:
            raise InvalidInput(
                f"{name} of {file} must be a plain array, got pickled objects, which are not read; save it as one array of "
                "numbers, or tasks of different sizes as a folder of CSV files"
            )
        if math.prod(shape) * dtype.itemsize > info.file_size or min(shape, default=0) < 0 or not dtype.itemsize:
            raise ValueError(f"it says to have the shape {shape}, which {info.file_size:,} bytes cannot hold")
        with archive.open(info.filename) as member:
            return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
    except (*BROKEN, lzma.LZMAError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{name} of {file} cannot be read ({first_line(error)}); save it as one array of numbers") from None


def _pair(file: Path, arrays: dict[str, NDArray[Any]], part: str) -> tuple[Floats, Floats]:
    """X and y of one part, with shapes that fit each other."""
    X_name, y_name = f"X{part}", f"y{part}"
    for name, other in ((X_name, y_name), (y_name, X_name)):
        if name not in arrays:
            raise InvalidInput(f"{file} has {other} but no {name}; give both or none")
    X, y = arrays[X_name], arrays[y_name]
    if X.ndim != 3 or 0 in X.shape:
        remedy = "give each task its table of rows and features"
        raise check.fail(f"{X_name} of {file}", X, "an array of shape (tasks, rows, features)", remedy)
    if y.shape != X.shape[:2]:
        raise check.fail(f"{y_name} of {file}", y, f"an array of shape {X.shape[:2]}", f"{X_name} has that many tasks and rows")
    return check.array(f"{X_name} of {file}", X), check.array(f"{y_name} of {file}", y)


def _feature_names(file: Path, arrays: dict[str, NDArray[Any]], n_features: int) -> list[str]:
    if "feature_names" not in arrays:
        return numbered(n_features)
    names = arrays["feature_names"]
    if names.shape != (n_features,):
        raise check.fail(f"feature_names of {file}", names, f"an array of shape ({n_features},)", "give each feature one name")
    try:
        texts = [str(name) for name in names.tolist()]
        "".join(texts).encode()
    except (SystemError, ValueError):  # NumPy raises the first for numbers that are no letters
        raise InvalidInput(f"feature_names of {file} must be text that UTF-8 can hold, got others; rename them") from None
    if len(set(texts)) < n_features:
        raise InvalidInput(f"feature_names of {file} must differ, got a name twice; rename one")
    return texts


def _labels(file: Path, arrays: dict[str, NDArray[Any]], n_features: int) -> NDArray[np.intp] | None:
    """The true groups, from labels or theta; if both are given, they must say the same."""
    found: list[NDArray[np.intp]] = []
    if "theta" in arrays:
        theta = arrays["theta"]
        if theta.ndim != 2 or len(theta) != n_features:
            raise check.fail(f"theta of {file}", theta, f"an array of shape ({n_features}, groups)", "it is the true structure")
        binary = check.binary(f"theta of {file}", theta, shape=theta.shape)
        if np.any(binary.sum(axis=1) != 1):
            raise check.fail(f"theta of {file}", theta, "one-hot in every row", "give each feature one group")
        found.append(binary.argmax(axis=1))
    if "labels" in arrays:
        labels = arrays["labels"]
        if labels.shape != (n_features,) or labels.dtype.kind not in "iu":
            raise check.fail(f"labels of {file}", labels, f"{n_features} whole numbers", "give each feature its true group")
        found.append(labels.astype(np.intp))
    if len(found) == 2 and len(np.unique(np.column_stack(found), axis=0)) != min(len(np.unique(it)) for it in found):
        raise InvalidInput(f"theta and labels of {file} must be the same structure, got two; leave one out")
    return found[-1] if found else None


def read_folder(folder: Path, reader: Reader, fraction: float | None, seed: int) -> TaskData:
    """A table per task, all with the same columns; NAME_val and NAME_test hold the other rows of the task NAME.

    Without validation rows, this fraction of every task is split off for validation. The encoding is learnt from the training
    rows that are left, so that neither validation nor test rows have a part in it.
    """
    files = _files(folder)
    names = [name for name in files if not _ending(name)]
    if len(names) < 2:
        raise InvalidInput(f"{folder} must hold the files of two tasks or more, got {len(names)}; {LEAST_TASKS}")
    first = reader.train(files[names[0]])
    endings = [ending for ending in PARTS if _all_or_none(folder, names, files, ending)]
    train = [first, *(reader.like(files[name]) for name in names[1:])]
    parts = {"": train, **{ending: [reader.like(files[name + ending]) for name in names] for ending in endings}}
    split_off = None
    if "_val" not in endings:
        split_off = drawn_for_validation(names, [len(it) for it in train], fraction, seed)
    reader.learn(train, None if split_off is None else _others([len(it) for it in train], split_off))
    tasks = {ending: stacked([reader.numbers(it) for it in some], [it.y for it in some]) for ending, some in parts.items()}
    told = reader.facts([it for some in parts.values() for it in some])
    data = TaskData(names, reader.names, tasks[""], tasks.get("_val"), tasks.get("_test"), reading=told)
    return data if split_off is None else data.without(split_off)


def _others(sizes: Sequence[int], split_off: Sequence[Indices]) -> Indices:
    """The rows that are not split off, counted through all tasks."""
    stays = np.ones(sum(sizes), dtype=bool)
    for start, rows in zip(np.cumsum([0, *sizes[:-1]]), split_off, strict=True):
        stays[start + rows] = False
    return np.flatnonzero(stays)


def _files(folder: Path) -> dict[str, Path]:
    """The tables of a folder by their names without ending, in the order people count."""
    files: dict[str, Path] = {}
    for file in sorted(folder.iterdir(), key=lambda it: counting_order(it.name)):
        ending = next((it for it in ENDINGS if file.name.lower().endswith(it)), None)
        if ending is None or file.name.startswith(".") or not file.is_file():
            continue
        check_utf8(file)
        name = file.name[: -len(ending)]
        if name in files:
            raise InvalidInput(f"{folder} must hold one file per task, got {files[name].name} and {file.name}; remove one")
        files[name] = file
    if not files:
        raise InvalidInput(f"{folder} must hold a CSV file per task, got none; name the folder with the files themselves")
    for name in files:
        if (ending := _ending(name)) and (task := name.removesuffix(ending)) not in files:
            raise InvalidInput(
                f"{files[name]} has {PARTS[ending]} rows of a task {task!r} that is not there; add {task}.csv or rename the file"
            )
    return files


def _ending(name: str) -> str | None:
    """What tells that a file has the validation or test rows of another."""
    return next((it for it in PARTS if name.endswith(it)), None)


def _all_or_none(folder: Path, names: Sequence[str], files: dict[str, Path], ending: str) -> bool:
    there = [name for name in names if name + ending in files]
    if there and len(there) < len(names):
        lost = next(name for name in names if name not in there)
        raise InvalidInput(
            f"{folder} must have {PARTS[ending]} rows of every task or of none, got {files[there[0] + ending].name} "
            f"but no {lost}{ending}.csv; add it"
        )
    return bool(there)
