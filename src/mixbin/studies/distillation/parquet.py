"""Which rows of a folder of Parquet files to keep: the same study with the rows on Dask, in local processes or on a cluster.

The workers write the selected rows, as Parquet part files with all columns and the place each row came from.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.data.dask_rows import BadBlock, DaskBlocks, rows_where
from mixbin.data.parquet import Pair, open_folder, write_rows
from mixbin.data.tables import VALIDATION_FRACTION, is_parquet, split
from mixbin.data.unpacking import check_regular
from mixbin.data.workers import local_workers
from mixbin.errors import ClusterLost, InvalidInput, Unsolved, WorkersLost
from mixbin.problems import RidgeDistillation
from mixbin.reporting.record import Record
from mixbin.result import Result
from mixbin.studies.distillation.regression import RidgeStudy


class ParquetRegression(RidgeStudy):
    """A table that need not fit in memory."""

    kind = "parquet"
    files: ClassVar = {
        "selected": "Parquet files of the selected rows, with the file and the number each has there",
        "model.json": RidgeStudy.files["model.json"],
    }

    def check(self) -> None:
        """What can be refused before a worker is started."""
        super().check()
        options = self.options
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
        try:
            import dask.array
            import dask.utils
            import distributed  # noqa: F401
        except ImportError:
            remedy = "pip install 'mixbin[dask]'"
            raise InvalidInput(f"a folder of Parquet files needs Dask, which is not installed; {remedy}") from None
        if options.memory_limit is not None:
            try:
                enough = dask.utils.parse_bytes(options.memory_limit) > 0
            except ValueError:
                enough = False
            if not enough:
                raise InvalidInput(f"--memory-limit must be a size, got {options.memory_limit!r}; write one such as 2GB")

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
        """The folders as Dask arrays, with a validation part split off where none is given; one pass looks at everything."""
        options = self.options
        self.folder = open_folder(options.train)
        self.features, self.target = self.folder.head.roles(options.target, options.ignore)
        columns = [*self.features, self.target]
        self.folder.check(columns)
        train = self.folder.arrays(self.features, self.target)
        self.pieces = self.folder.pieces(len(columns))
        self.rows = np.arange(len(self.folder))
        if options.validation:
            validation = self._arrays(options.validation)
        else:
            self.rows, _ = split(len(self.folder), options.validation_fraction, options.seed, "TRAIN", "give --validation")
            candidate = np.zeros(len(self.folder), dtype=bool)
            candidate[self.rows] = True
            validation = Pair(*(rows_where(it, ~candidate) for it in train))
            train = Pair(*(rows_where(it, candidate) for it in train))
        self.validation_rows = len(validation.y)
        budget = self.budget
        assert budget is not None
        try:
            self.problem = RidgeDistillation(*train, *validation, budget=budget, alpha=options.alpha)
        except BadBlock as error:
            known = " of X and y" in str(error) or not options.validation
            raise InvalidInput(f"{self.pieces[error.block].file if known else '--validation'}: {error}") from None
        self.test_rows: tuple[Floats, Floats, int] | None = None
        """The mean and the R factor of the test rows, and their number: all that the figures are made of."""
        if options.test:
            held_out = self._arrays(options.test)
            self.test_rows = DaskBlocks(*held_out, ("--test", "its target"), keep=False).summary(np.zeros(len(columns)))

    def _arrays(self, paths: list[Path]) -> Pair:
        """X and y of several files or folders, one after the other."""
        import dask.array as da

        folders = [open_folder(path) for path in paths]
        for folder in folders:
            folder.check([*self.features, self.target], self.folder)
        parts = zip(*(folder.arrays(self.features, self.target) for folder in folders), strict=True)
        return Pair(*(da.concatenate(part) for part in parts))

    def digests(self) -> dict[str, str | None]:
        """Neither the number of workers nor their place is part of it."""
        test = None if self.test_rows is None else digest(*map(np.asarray, self.test_rows))
        return {"data": self.problem.fingerprint(), "test": test}

    @property
    def blocks(self) -> DaskBlocks:
        """Where the rows are."""
        assert self.problem.dask_blocks is not None
        return self.problem.dask_blocks

    def prepare(self) -> str:
        """Where the rows are, and who works on them."""
        return f"{self.source}: {self.blocks.storage}; {_workers(self.blocks.n_workers)}"

    def progress(self) -> str:
        """How much was read."""
        return f"{_workers(self.blocks.n_workers)}, {self.blocks.bytes_read / 1e9:,.1f} GB read"

    def losses(self, theta: NDArray[Any], lam: Floats) -> dict[str, float]:
        """From the mean and the R factor of the rows, which is all that is needed of them."""
        weights = theta.astype(np.float64)
        found = {"validation": self.problem.evaluate(weights, np.asarray(lam, dtype=np.float64), gradient=False).value}
        if self.test_rows is not None:
            mean, R, _ = self.test_rows
            coef, intercept = self.problem.model(weights, lam)
            K = np.append(-np.asarray(coef), 1.0)
            missed = K @ mean - intercept
            found["test"] = 0.5 * float(missed**2 + np.sum((R @ K) ** 2))
        return found

    def sizes(self) -> dict[str, Any]:
        """Numbers of rows; the rows that were split off follow from the share and the seed."""
        options = self.options
        split_off = {"fraction": options.validation_fraction or VALIDATION_FRACTION, "seed": options.seed}
        return {
            "validation_rows": self.validation_rows,
            "test_rows": None if self.test_rows is None else self.test_rows[2],
            "validation_split": None if options.validation else split_off,
        }

    def facts(self, main: Result) -> dict[str, Any]:
        """Also where the rows were, and how often they were read."""
        blocks = self.blocks
        where = {"workers": blocks.n_workers, "storage": blocks.storage, "passes": blocks.passes, "bytes_read": blocks.bytes_read}
        return super().facts(main) | where

    def texts(self, method: str, main: Result, out: Path) -> dict[str, str]:
        """The model; the rows, one part file for each piece that has some, are written where the workers are."""
        import dask
        from distributed import KilledWorker

        folder = out / "selected"
        folder.mkdir(exist_ok=True)
        chosen = np.flatnonzero(main.theta)
        rows = self.rows[chosen]
        weights = None if main.theta.dtype == np.bool_ else main.theta[chosen]
        write = dask.delayed(write_rows, pure=False, traverse=False)
        tasks = []
        for i, piece in enumerate(self.pieces):
            low, high = np.searchsorted(rows, [piece.row, piece.row + piece.rows])
            if low < high:
                part = None if weights is None else weights[low:high]
                name = str((folder / f"part-{i:05d}.parquet").absolute())
                tasks.append(write(piece, rows[low:high] - piece.row, part, str(self.folder.path), name))
        try:
            written = sum(dask.compute(*tasks))
        except KilledWorker as error:
            raise WorkersLost("workers have died while they wrote the selected rows") from error
        assert written == rows.size
        return {"model.json": self.model(main, "the rows of selected/")}

    @classmethod
    def more(cls, record: Record) -> Iterator[str]:
        """Where the rows were."""
        facts: Mapping[str, Any] = record.facts
        yield (
            f"The rows: {facts['storage']}; {facts['passes']:,} passes by {_workers(facts['workers'])}, "
            f"{facts['bytes_read'] / 1e9:,.1f} GB read."
        )


def _workers(n: int | None) -> str:
    return f"{n} worker{'' if n == 1 else 's'}"


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """A client of a running scheduler."""
    from distributed import Client

    try:
        client = Client(scheduler, timeout="15s")
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).strip().split("\n")[0][:120] or type(error).__name__
        raise InvalidInput(
            f"--scheduler must be the address of a running Dask scheduler, got {scheduler!r} ({reason}); "
            "start one with 'dask scheduler' and write its address, such as tcp://127.0.0.1:8786"
        ) from None
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise InvalidInput(f"--scheduler {scheduler} has no workers; start some with 'dask worker {scheduler}'")
        yield client
