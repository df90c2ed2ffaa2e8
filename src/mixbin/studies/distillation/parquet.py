"""Which rows of a folder of Parquet files to keep: the same study with the rows on Dask, in local processes or on a cluster.

The workers write the selected rows, as Parquet part files with all columns and the place each row came from.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.data.dask_blocks import BadBlock
from mixbin.data.dask_tables import check_dask_installed, rows_where
from mixbin.data.folder_reader import FolderPart, FolderReader
from mixbin.data.parquet import ParquetFolder
from mixbin.data.tables import VALIDATION_FRACTION, is_parquet, split
from mixbin.data.training_and_validation import block_summary
from mixbin.data.unpacking import check_regular, first_line
from mixbin.data.workers import checked_memory, local_workers
from mixbin.errors import ClusterLost, InvalidInput, Unsolved, WorkersLost
from mixbin.reporting.record import Record
from mixbin.reporting.runs import reading_facts
from mixbin.result import Result
from mixbin.studies.distillation.regression import RidgeStudy
from mixbin.studies.options import Encode
from mixbin.studies.study import Table


class FolderOfCommand(ParquetFolder):
    """A folder whose errors name the options of the command."""

    _target_word, _ignore_word, _numbers_only = "--target", "--ignore", False


class ParquetRegression(RidgeStudy):
    """A table that need not fit in memory."""

    kind = "parquet"
    needs_workers = True
    folder_type: ClassVar[type[ParquetFolder]] = FolderOfCommand
    folder: ParquetFolder
    files: ClassVar = {
        "selected": "Parquet files of the selected rows, with the file and the number each has there",
        "model.json": RidgeStudy.files["model.json"],
    }

    def check(self) -> None:
        """What can be refused before a worker is started."""
        super().check()
        options = self.options
        # What is written in cells of text may need options; the file itself is Parquet.
        if given := [name for name in options.about_files() if name in ("--encoding", "--header", "--no-header")]:
            raise InvalidInput(
                f"{given[0]} has no use for a folder of Parquet files, which says itself what it holds; leave it out"
            )
        if options.workers is not None and options.scheduler is not None:
            raise InvalidInput("--workers has no use beside --scheduler; leave one of them out")
        if options.memory_limit is not None and options.scheduler is not None:
            raise InvalidInput("--memory-limit has no use beside --scheduler, whose workers have their own; leave it out")
        for file in (options.train, *options.validation, *options.test):
            try:
                check_regular(file)
                if file.is_file() and not is_parquet(file):
                    raise InvalidInput(
                        f"{file} must be Parquet to be read by workers; write it as Parquet, or leave out --workers"
                    )
            except OSError as error:
                raise InvalidInput(f"{file} cannot be read ({error.strerror}); check the path") from None
        if self.needs_workers:
            check_dask_installed("a folder of Parquet files")
        checked_memory("--memory-limit", options.memory_limit)

    @contextmanager
    def resources(self) -> Iterator[None]:
        """Workers; those that are lost end the run with what to do about it."""
        # The record says what Dask and the problem have to say; a log that nobody asked for would disturb the progress display.
        logging.getLogger("mixbin").addHandler(logging.NullHandler())
        scheduler = self.options.scheduler
        with _connected(scheduler) if scheduler else local_workers(self.options.workers, self.options.memory_limit):
            try:
                yield
            except WorkersLost:
                raise Unsolved(
                    "workers have died again and again under the same blocks, perhaps for want of memory; repeat the command "
                    "with --resume and more memory (--memory-limit), or write the files with smaller row groups"
                ) from None
            except ClusterLost:
                lost = f"the scheduler {scheduler}" if scheduler else "the scheduler of the local cluster"
                raise Unsolved(f"{lost} is lost; repeat the command with --resume, on a new cluster, to go on") from None

    def load(self) -> None:
        """The folders as arrays of numbers, with a validation part split off where none is given; one pass looks at everything.

        Columns that are not numbers, and gaps, take some passes more, in which their encoding is learnt.
        """
        options = self.options
        self.folder = self.folder_type(options.train, options.target, options.ignore)
        self.validation_folders, self.test_folders = (
            [self.folder_type(path, like=self.folder) for path in paths] for paths in (options.validation, options.test)
        )
        folders = [self.folder, *self.validation_folders, *self.test_folders]
        self.target = self.folder.target
        encode, for_classes = options.encode is Encode.AUTO, "--task classification with one file"
        how = {"dialect": options.dialect(), "encode": encode, "as_text": options.text, "for_classes": for_classes}
        self.reader = FolderReader(target=self.target, columns=self.folder.features, **how)
        self.read_parts: list[FolderPart] = []
        bad = None
        if all(folder.is_plain for folder in folders) and not (options.text or options.missing):
            try:
                return self._use({})
            except BadBlock as error:  # a gap that the ends of the files do not tell of, or an infinite number
                bad = self._named(error)
        self._read(folders)
        try:
            self._use({part.folder: part.there for part in self.read_parts})
        except BadBlock as error:
            raise bad or self._named(error) from None

    def _read(self, folders: Sequence[ParquetFolder]) -> None:
        """Learn what the columns become; all that cannot be used is refused at once."""
        whole = self.reader.part(self.folder)
        _, held = self._parted(whole.there)
        self.reader.learn(whole, None if held is None else held)
        self.read_parts = [whole, *(self.reader.like(folder) for folder in folders[1:])]

    def _named(self, error: BadBlock) -> InvalidInput:
        """The error with the file that it is about."""
        if str(error).startswith(str(self.folder.pieces[error.block % len(self.folder.pieces)].file)):
            return error
        known = " of X and y" in str(error) or not self.options.validation
        return InvalidInput(f"{self.folder.pieces[error.block].file if known else '--validation'}: {error}")

    def _parted(self, there: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        """The candidate rows and those that are split off, among the rows that have a target."""
        options, rows = self.options, np.flatnonzero(there)
        if options.validation or self.judged_by_all:
            return rows, None
        candidates, held = split(len(rows), options.validation_fraction, options.seed, "TRAIN", "give --validation")
        return rows[candidates], rows[held]

    def _use(self, there: Mapping[ParquetFolder, NDArray[np.bool_]]) -> None:
        """Make the problem from the rows that have a target: those named, or all."""
        options = self.options
        everything = np.ones(len(self.folder), dtype=bool)
        self.rows, held = self._parted(there.get(self.folder, everything))
        self.features = self.reader.names
        validation: tuple[Any, ...] = ()
        if options.validation:
            validation = self.tables(self.validation_folders, there)
        elif held is not None:
            # Which rows these are follows from the share and the seed; their numbers would be a long list.
            self.split_off = {"fraction": options.validation_fraction or VALIDATION_FRACTION, "seed": options.seed}
            validation = self.tables([self.folder], {self.folder: _mask(held, everything.size)})
        train = self.tables([self.folder], {self.folder: _mask(self.rows, everything.size)})
        self.validation_rows = len(validation[1]) if validation else 0
        self.problem = self.problem_of(*train, *validation)
        self.test: tuple[Floats, Floats, int] | None = None
        """The mean and the R factor of the test rows, and their number: all that the figures are made of."""
        if options.test:
            held_out = self.tables(self.test_folders, there)
            self.test = block_summary(*held_out, np.zeros(len(self.features) + 1), ("--test", "its target"))
            self.test_rows = self.test[2]

    def tables(self, folders: Sequence[Any], there: Mapping[Any, NDArray[np.bool_]]) -> tuple[Any, Any]:
        """X and y of several folders, one after the other, as Dask arrays; of some rows where ``there`` names them."""
        import dask.array as da

        parts = []
        for it in folders:
            mask = there.get(it)
            if mask is None or mask.all():
                parts.append((it.X, it.y) if len(folders) == 1 else (it.X.in_parts, getattr(it.y, "in_parts", it.y)))
            else:
                parts.append((rows_where(it.X, mask), rows_where(it.y, mask)))
        if len(parts) == 1:
            return parts[0]
        return da.concatenate([X for X, _ in parts]), da.concatenate([y for _, y in parts])

    def digests(self) -> dict[str, str | None]:
        """Neither the number of workers nor their place is part of it."""
        test = None if self.test is None else digest(*map(np.asarray, self.test))
        return {"data": self.problem.fingerprint(), "test": test}

    def contents(self) -> dict[str, Any]:
        """Also what each feature is and which rows have no target, where that is not plain."""
        return super().contents() | self.reader.identity(self.read_parts)

    def model_facts(self) -> dict[str, Any]:
        """How the features are made from the columns."""
        return self.reader.model_facts()

    def prepare(self) -> str:
        """Where the rows are, and who works on them."""
        rows = self.problem.rows.statistics()
        return f"{self.source}: {rows.storage}; {_workers(rows.n_workers)}"

    def progress(self) -> str:
        """How much was read."""
        rows = self.problem.rows.statistics()
        return f"{_workers(rows.n_workers)}, {rows.bytes_read / 1e9:,.1f} GB read"

    def test_loss(self, coef: Floats, intercept: Any) -> float:
        """From the mean and the R factor of the rows, which is all that is needed of them."""
        assert self.test is not None
        mean, R, _ = self.test
        K = np.append(-np.asarray(coef), 1.0)
        missed = K @ mean - intercept
        return 0.5 * float(missed**2 + np.sum((R @ K) ** 2))

    def facts(self, main: Result) -> dict[str, Any]:
        """Also where the rows were, and how often they were read."""
        rows = self.problem.rows.statistics()
        where = {"workers": rows.n_workers, "storage": rows.storage, "passes": rows.passes, "bytes_read": rows.bytes_read}
        return super().facts(main) | where | reading_facts(self.reader.facts(self.read_parts))

    def texts(self, method: str, main: Result, out: Path) -> dict[str, str]:
        """The model; the workers write the rows."""
        chosen = np.flatnonzero(main.theta)
        weights = None if main.theta.dtype == np.bool_ else main.theta[chosen]
        written = self.folder.save_rows(self.rows[chosen], out / "selected", weights)
        assert written == chosen.size
        return {"model.json": self.model(main, "the rows of selected/")}

    @classmethod
    def more(cls, record: Record) -> Iterator[str | Table]:
        """Also where the rows were."""
        yield from super().more(record)
        facts: Mapping[str, Any] = record.facts
        yield (
            f"The rows: {facts['storage']}; {facts['passes']:,} passes by {_workers(facts['workers'])}, "
            f"{facts['bytes_read'] / 1e9:,.1f} GB read."
        )


def _mask(rows: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out


def _workers(n: int | None) -> str:
    if n is None:
        return "this process"
    return f"{n} worker{'' if n == 1 else 's'}"


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """A client of a running scheduler."""
    from distributed import Client

    try:
        client = Client(scheduler, timeout="15s")
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInput(
            f"--scheduler must be the address of a running Dask scheduler, got {scheduler!r} ({first_line(error)}); "
            "start one with 'dask scheduler' and write its address, such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise InvalidInput(f"--scheduler {scheduler} has no workers; start some with 'dask worker {scheduler}'")
        yield client
