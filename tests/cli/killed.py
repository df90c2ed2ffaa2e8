"""A command that is killed, or interrupted as by Ctrl-C, at one of its evaluations; a process of the tests of ``--resume``.

python -m tests.cli.killed KILL|INT EVALUATION ARGUMENTS...
"""

import os
import signal
import sys
from dataclasses import replace

import mixbin.cli.commands.reproduce as reproduce
import mixbin.reproduction.job as job
import mixbin.studies.runner as runner
from mixbin.cli import main
from mixbin.problems import GroupLassoStructure, RidgeDistillation

FEW = replace(job.QUICK, n_tasks=30)
"""The size of reproductions that are ended: what is told of an end does not depend on it."""


def end_at(problem, evaluation, sign):
    count, evaluate = [0], problem.evaluate

    def counted(*args, **keywords):
        count[0] += 1
        if count[0] == evaluation:
            os.kill(os.getpid(), sign)
        return evaluate(*args, **keywords)

    problem.evaluate = counted


if __name__ == "__main__":
    sign, moment, *arguments = sys.argv[1:]
    for problem in (GroupLassoStructure, RidgeDistillation):
        end_at(problem, int(moment), signal.Signals[f"SIG{sign}"])
    # Written at every step when killed, only at the end when interrupted.
    runner.CHECKPOINT_EVERY = job.CHECKPOINT_EVERY = 0.0 if sign == "KILL" else 1e6
    reproduce.QUICK = FEW
    sys.argv = ["mixbin", *arguments]
    main()
