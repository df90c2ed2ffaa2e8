"""Running independent jobs: a finished job is a file, an unfinished one keeps its checkpoint, and nothing is computed twice.

Every job runs on one thread, so that its numbers do not depend on how many jobs run at once.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mixbin._files import read_json, write_text
from mixbin.errors import CheckpointMismatch, InvalidInput
from mixbin.reproduction import distillation, groups
from mixbin.reproduction.job import Job, Record, Work


class Runs:
    """The folders of finished and of unfinished jobs."""

    def __init__(self, folder: Path) -> None:
        self.finished, self.unfinished = folder / "runs", folder / "unfinished"

    def make(self) -> None:
        """Create the folders."""
        try:
            for folder in (self.finished, self.unfinished):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"--out {str(self.finished.parent)!r} cannot be written to ({error.strerror}); choose another folder"
            ) from None

    def record(self, job: Job) -> Record | None:
        """The record of a job, or None if the job is not finished."""
        file = self._file(job)
        if not file.exists():
            return None
        record = read_json(file)
        mine = json.loads(json.dumps(job.identity()))
        different = [name for name in mine if record.get("identity", {}).get(name) != mine[name]]
        if different:
            raise CheckpointMismatch(
                f"--out holds a run {job.name} that differs in {', '.join(different)}; choose another folder, or delete {file}"
            )
        return record

    def compute(self, job: Job, parent: int) -> None:
        """Run a job, or continue it where it was interrupted, and store its record."""
        from threadpoolctl import threadpool_limits

        began = time.perf_counter()
        place = self.unfinished / job.name
        place.mkdir(parents=True, exist_ok=True)
        run = groups.compute if job.experiment == "groups" else distillation.compute
        with threadpool_limits(1):
            record = run(job, Work(place, parent))
        record |= {"identity": job.identity(), "job_seconds": time.perf_counter() - began}
        write_text(self._file(job), json.dumps(record, allow_nan=False) + "\n")
        shutil.rmtree(place)

    def do(self, jobs: Sequence[Job], n_jobs: int) -> Iterator[Job]:
        """Run all jobs that are not finished, ``n_jobs`` at a time; yields each job when it has ended."""
        from joblib import Parallel, delayed

        todo = [job for job in jobs if self.record(job) is None]
        together = Parallel(n_jobs=min(n_jobs, max(1, len(todo))), return_as="generator_unordered", pre_dispatch="n_jobs")
        yield from together(delayed(_done)(self, job, os.getpid()) for job in todo)

    def clear(self) -> None:
        """Remove the folder of unfinished jobs if it is empty."""
        if self.unfinished.is_dir() and not any(self.unfinished.iterdir()):
            self.unfinished.rmdir()

    def _file(self, job: Job) -> Path:
        return self.finished / f"{job.name}.json"


def _done(runs: Runs, job: Job, parent: int) -> Job:
    runs.compute(job, parent)
    return job
