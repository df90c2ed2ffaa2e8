"""A folder of Parquet files as one table that is never read whole: its pieces are the blocks of Dask arrays.

Files are taken in the order of their names, numbers in them as numbers; rows are counted from 0 through all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._files import cannot_write, shortened
from mixbin._validate import Floats, listed
from mixbin.data import tables
from mixbin.data.dask_tables import check_dask_installed
from mixbin.data.encoded_pieces import EncodedRows, Recipe, read_target
from mixbin.data.freed_memory import called
from mixbin.data.parquet_pieces import Piece, PieceRows, PieceTarget, is_saved_part, pieces_of, reading, write_rows
from mixbin.data.parts import RowsInParts
from mixbin.data.unpacking import check_regular, check_utf8, counting_order
from mixbin.errors import InvalidInput, WorkersLost

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".parq", ".pq")
MOST_NAMED = 100
"""Files that a message names."""
AT_A_TIME = 64
"""Pieces that are looked at before what was found in them is put together."""
T = TypeVar("T")


class ParquetFolder:
    """The Parquet files of a folder as one table: its features X and its target y as Dask arrays, of which nothing is read yet.

    X and y may be passed wherever mixbin takes Dask arrays. Workers then read the files block by block: once if the table fits in
    half of their memory, else in every pass, from copies on their disks where these fit (docs/how-far-it-scales.md). Needs Dask:
    ``pip install "mixbin[dask]"``.

    Parameters
    ----------
    path : str or Path
        A folder, which is searched for .parquet, .parq and .pq files down to its subfolders, or a single file.
    target : str or int, optional
        The column to predict, by its name or its number (-1 is the last). Needed unless ``like`` is given.
    ignore : sequence of str or int, default ()
        Columns that are not features.
    like : ParquetFolder, optional
        Take target and features, in their order, from another folder: that of the training rows, say, for validation rows.

    Attributes
    ----------
    X : dask.array.Array of shape (rows, features)
        The features.
    y : dask.array.Array of shape (rows,)
        The target.
    features : list of str
        The names of the columns of X.
    target : str
        The name of the target.
    files : list of Path
        The files in the order of their rows.

    See Also
    --------
    local_workers : Workers on this machine to read and compute with.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd, mixbin as mb
    >>> from pathlib import Path
    >>> rng, path = np.random.default_rng(0), Path(tempfile.mkdtemp())
    >>> for i in range(3):
    ...     part = pd.DataFrame(rng.normal(size=(50, 3)), columns=["size", "age", "price"])
    ...     part["price"] += part["size"]
    ...     part.to_parquet(path / f"part-{i}.parquet", index=False)
    >>> folder = mb.ParquetFolder(path, target="price")
    >>> len(folder), folder.features
    (150, ['size', 'age'])
    >>> model = mb.DistillationRegressor(budget=20, max_evaluations=30, random_state=0).fit(folder.X, folder.y)
    >>> folder.save_rows(model.support_, path / "selected")
    20
    >>> pd.read_parquet(path / "selected").columns.tolist()  # where each row came from, and all its columns
    ['row', 'file', 'row_in_file', 'size', 'age', 'price']
    """

    _target_word, _ignore_word = "target", "ignore"
    """What messages call the arguments."""
    _numbers_only = True
    """Whether other columns are refused at once; without it, ``FolderReader`` sees to them."""

    def __init__(
        self,
        path: str | Path,
        target: str | int | None = None,
        ignore: Sequence[str | int] = (),
        *,
        like: ParquetFolder | None = None,
    ) -> None:
        self._check_installed()
        if not isinstance(path, (str, Path)):
            raise check.fail("path", path, "the name of a folder or file")
        if (target is None) == (like is None):
            raise check.fail(self._target_word, target, "a column, or None with like", "give one of target and like")
        if target is not None and not _is_column(target):
            raise check.fail(self._target_word, target, "the name or the number of a column")
        if isinstance(ignore, (str, bytes)) or not np.iterable(ignore) or not all(_is_column(it) for it in ignore):
            raise check.fail(self._ignore_word, ignore, "a sequence of columns", "such as ['id']")
        if like is not None and not isinstance(like, ParquetFolder):
            raise check.fail("like", like, "a ParquetFolder, or None", "pass the folder whose columns are to be used")
        self.path = Path(path)
        self._known_pieces: dict[int, list[Piece]] = {}
        self.files = parquet_files(self.path)
        self._metadata, self._schemas = _footers(self.files)
        if not len(self):
            raise InvalidInput(f"{path} must hold rows of numbers, got none in {len(self.files)} files; check the files")
        if like is None:
            words = self._target_word, self._ignore_word
            self.features, self.target = self._head().roles(str(target), [str(name) for name in ignore], words)
        else:
            self.features, self.target = like.features, like.target
        self._check_columns((like or self).files[0])

    def _check_installed(self) -> None:
        check_dask_installed("a folder of Parquet files")

    def __len__(self) -> int:
        return sum(data.num_rows for data in self._metadata)

    def __repr__(self) -> str:
        return f"ParquetFolder({str(self.path)!r}: {len(self):,} rows, {len(self.features)} features, target {self.target!r})"

    def _check_columns(self, first: Path) -> None:
        """Every file must have the features and the target; all that is missing is told at once."""
        needed = (*self.features, self.target)
        lost = [
            (file, names)
            for file, schema in zip(self.files, self._schemas, strict=True)
            if (names := [name for name in needed if name not in schema.names])
        ]
        if lost:
            (file, names), *others = lost
            more = "".join(f", {other} ({listed(it)})" for other, it in others[:MOST_NAMED])
            more += f" and {len(others) - MOST_NAMED:,} more" if len(others) > MOST_NAMED else ""
            raise InvalidInput(
                f"{file} must have the columns of {first}, but lacks {listed(names)}; add what is missing or take the file out"
                + (f"; likewise{more[1:]}" if others else "")
            )
        if self._numbers_only:
            self._check_numbers()

    def _check_numbers(self) -> None:
        """All columns must hold numbers; one message names all that do not, each with the first file in which it does not."""
        wrong: dict[str, tuple[Path, Any]] = {}
        for file, schema in zip(self.files, self._schemas, strict=True):
            for name in (*self.features, self.target):
                if name not in wrong and not tables.holds_numbers(schema.field(name).type):
                    wrong[name] = file, schema.field(name).type
        if not wrong:
            return
        (name, (file, kind)), *others = wrong.items()
        more = "".join(f", {other!r} of {where.name} ({it})" for other, (where, it) in others)
        names = ", ".join(map(repr, wrong))
        raise InvalidInput(
            f"column {name!r} of {file} must hold numbers, got the type {kind}; leave out with {self._ignore_word} {names}, or "
            "use mixbin distill, which turns such columns into numbers" + (f"; likewise{more[1:]}" if more else "")
        )

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers without gaps, as far as the ends of the files tell."""
        from pyarrow import types

        names = {*self.features, self.target}
        for data, schema in zip(self._metadata, self._schemas, strict=True):
            for name in names:
                kind = schema.field(name).type
                if not tables.holds_numbers(kind) or types.is_boolean(kind):
                    return False
            for i in range(data.num_row_groups):
                group = data.row_group(i)
                for j in range(group.num_columns):
                    column = group.column(j)
                    told = column.statistics if column.path_in_schema in names else None
                    if told is not None and told.has_null_count and told.null_count:
                        return False
        return True

    def find_all(self, typed: Sequence[str], option: str) -> list[str]:
        """The columns that were named, by names, numbers or patterns."""
        return self._head().find_all(typed, option)

    def _head(self) -> tables.Table:
        """A table without rows, to look columns up in."""
        import pyarrow as pa

        # Not ``empty_table``, which would import pandas for it: 50 MB.
        schema = self._schemas[0]
        names = [name for name in schema.names if not re.fullmatch(tables.PANDAS_INDEX, name)]
        return tables.Table(self.path, True, pa.Table.from_batches([], schema).select(names))

    recipe: Recipe | None = None
    """How the columns become numbers; None if they all are. The pieces may be other ones with it than without."""

    @property
    def width(self) -> int:
        """The columns of X."""
        return len(self.features) if self.recipe is None else len(self.recipe.encoding.names)

    @property
    def pieces(self) -> list[Piece]:
        """The table cut into blocks of whole row groups, since no part of a row group can be read alone."""
        return self._pieces(self.width)

    def _pieces(self, width: int) -> list[Piece]:
        if width not in self._known_pieces:
            self._known_pieces[width] = pieces_of(self.files, self._metadata, width + 1)
        return self._known_pieces[width]

    def rows_of(self, piece: Piece) -> RowsInParts:
        """The features of a piece."""
        return PieceRows(piece, self.features, self._dtype) if self.recipe is None else EncodedRows(piece, self.recipe)

    def target_of(self, piece: Piece) -> NDArray[Any]:
        """The target of a piece."""
        if self.recipe is None:
            return np.asarray(PieceTarget(piece, self.target, self._dtype))
        return read_target(piece, self.target, self.recipe.typed)

    @cached_property
    def X(self) -> Any:  # noqa: N802
        """The features; mixbin itself uses ``X.in_parts``, in which workers never hold a block as one array."""
        if self.recipe is None:
            return _with_parts(self._dask_array("X", PieceRows, (self.features, self._dtype), self.width))
        return _with_parts(self._dask_array("X", EncodedRows, (self.recipe,), self.width))

    @cached_property
    def y(self) -> Any:
        """The target, in the blocks of X; if it is a column of numbers, ``y.in_parts`` is read together with X."""
        if self.recipe is None:
            return _with_parts(self._dask_array("y", PieceTarget, (self.target, self._dtype)))
        return self._dask_array("y", read_target, (self.target, self.recipe.typed))

    @property
    def _dtype(self) -> np.dtype[Any]:
        """Float32 if all columns are, else float64."""
        if self.recipe is not None:
            return np.dtype(np.float64)
        names = [*self.features, self.target]
        single = all(str(schema.field(name).type) == "float" for schema in self._schemas for name in names)
        return np.dtype(np.float32 if single else np.float64)

    def _dask_array(self, which: str, read: Any, how: tuple[Any, ...], *width: int) -> Any:
        """One block for each piece: ``read(piece, *how)``."""
        import dask.array as da
        from dask import delayed
        from dask.base import tokenize

        names, dtype = [*self.features, self.target], self._dtype
        # The table is recognised by the names, sizes and times of its files, which are not read for it.
        relative = [str(file.relative_to(self.path)) if self.path.is_dir() else file.name for file in self.files]
        times = [(it.st_size, it.st_mtime_ns) for it in (file.stat() for file in self.files)]
        files = str(tokenize(relative, times, [data.num_rows for data in self._metadata]))
        what = () if self.recipe is None else (self.recipe.digest(),)
        name = f"parquet-{tokenize(files, names, dtype, *what)}-{which}"
        block, blocks = delayed(read, pure=True, traverse=False), []
        for i, piece in enumerate(self.pieces):
            rows = block(piece, *how, dask_key_name=f"{name}-{i}")
            blocks.append(da.from_delayed(rows, (piece.rows, *width), dtype=dtype))
        return da.concatenate(blocks)

    def save_rows(self, rows: ArrayLike, folder: str | Path, weights: Floats | None = None) -> int:
        """Write some rows as Parquet files: all their columns, after the file and the number that each row has there.

        Parameters
        ----------
        rows : bool array of shape (rows,), or int array in ascending order
            Which rows, such as ``support_`` of a fitted estimator.
        folder : str or Path
            Where the workers write a part file for each block with such rows; not the folder of the table's own files. Part
            files that an earlier call left there are removed first.
        weights : array, optional
            The weight of each written row, for a column of that name.

        Returns
        -------
        int
            How many rows were written.
        """
        wanted = np.asarray(rows)
        if wanted.dtype == np.bool_:
            if wanted.shape != (len(self),):
                raise check.fail("rows", wanted, f"a bool array of shape ({len(self)},)", "give one entry per row of the folder")
            wanted = np.flatnonzero(wanted)
        elif wanted.ndim != 1 or wanted.dtype.kind not in "iu" or np.any(np.diff(wanted) <= 0):
            raise check.fail("rows", wanted, "a bool array, or row numbers in ascending order", "pass np.unique of them")
        elif wanted.size and not (wanted[0] >= 0 and wanted[-1] < len(self)):
            raise check.fail("rows", wanted, f"row numbers from 0 to {len(self) - 1}")
        if weights is not None:
            weights = check.array("weights", weights, shape=wanted.shape, remedy="give one for each of these rows")
        if not isinstance(folder, (str, Path)) or "\0" in str(folder):
            raise check.fail("folder", folder, "the name of a folder")
        out = Path(folder)
        if out.resolve() in {file.resolve().parent for file in self.files}:
            must = "folder must not hold the files of the table"
            raise InvalidInput(f"{must}, which would be read as part of it, got {str(folder)!r}; choose another folder")
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(out, error) from error
        for old in out.glob("part-*.parquet"):
            if is_saved_part(old):
                old.unlink(missing_ok=True)
        tasks: list[tuple[Any, ...]] = []
        for i, piece in enumerate(self.pieces):
            low, high = np.searchsorted(wanted, [piece.row, piece.row + piece.rows])
            if low < high:
                part = None if weights is None else weights[low:high]
                name = str((out / f"part-{i:05d}.parquet").absolute())
                tasks.append((piece, wanted[low:high] - piece.row, part, str(self.path), name))
        return sum(self.computed(write_rows, tasks))

    def computed(self, function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> list[T]:
        """Have the workers call a function with each of these arguments; what it gives."""
        import dask
        from distributed import KilledWorker

        call = dask.delayed(called, pure=False, traverse=False)
        try:
            return list(dask.compute(*(call(function, *task) for task in tasks)))
        except KilledWorker as error:
            raise WorkersLost(f"workers have died during {function.__name__}") from error

    def in_turns(self, function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> Iterator[list[T]]:
        """The same for some tasks at a time, so that what they give is never here all at once."""
        for first in range(0, len(tasks), AT_A_TIME):
            yield self.computed(function, tasks[first : first + AT_A_TIME])


def _with_parts(in_parts: Any) -> Any:
    """A Dask array of plain blocks, with the one in parts as an attribute."""
    import dask.array as da

    class FolderArray(da.Array):  # type: ignore[misc]
        """What is computed from such an array is a Dask array as any other."""

        __slots__ = ("in_parts",)

    empty = np.empty((0,) * in_parts.ndim, in_parts.dtype)
    plain = in_parts.map_blocks(np.asarray, dtype=in_parts.dtype, meta=empty)
    array = FolderArray(plain.dask, plain.name, plain.chunks, meta=plain._meta)
    array.in_parts = in_parts
    return array


def _is_column(name: object) -> bool:
    return isinstance(name, (str, int, np.integer)) and not isinstance(name, bool)


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files in a folder, without hidden ones, or the single one that was named."""
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{shortened(str(path))} cannot be read ({getattr(error, 'strerror', error)}); check the path"
        ) from None
    if not path.is_dir():
        return [path]
    found = [it for it in path.rglob("*") if it.suffix in SUFFIXES and it.is_file()]
    shown = [it for it in found if not any(part[0] in "._" for part in it.relative_to(path).parts)]
    if not shown:
        raise InvalidInput(f"{path} must hold Parquet files ({', '.join(SUFFIXES)}), got none; check the folder")
    return sorted(shown, key=lambda it: counting_order(str(it.relative_to(path))))


def _footers(files: Sequence[Path]) -> tuple[list[Any], list[pa.Schema]]:
    """The metadata and the columns of each file."""
    from pyarrow import parquet

    metadata, schemas = [], []
    for file in files:
        check_utf8(file)
        try:
            with reading(file):
                footer = parquet.read_metadata(file)
                schema = footer.schema.to_arrow_schema()
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read ({error.strerror}); check its permissions, or take it out") from None
        tables.check_names(file, schema.names, "rename one and write the file anew")
        metadata.append(footer)
        schemas.append(schema)
    return metadata, schemas
