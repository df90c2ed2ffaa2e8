"""``mixbin distill`` that is killed, or interrupted as by Ctrl-C, at one of its evaluations; a process of test_distill.py.

python -m tests.cli.killed_distill KILL|INT EVALUATION ARGUMENTS...
"""

import os
import signal
import sys

import mixbin.cli.distill as command
from mixbin.cli import main
from mixbin.problems import RidgeDistillation


def end_at(evaluation, sign):
    count, evaluate = [0], RidgeDistillation.evaluate

    def counted(*args, **keywords):
        count[0] += 1
        if count[0] == evaluation:
            os.kill(os.getpid(), sign)
        return evaluate(*args, **keywords)

    RidgeDistillation.evaluate = counted


if __name__ == "__main__":
    sign, moment, *arguments = sys.argv[1:]
    end_at(int(moment), signal.Signals[f"SIG{sign}"])
    # Written at every step when killed, only at the end when interrupted.
    command.CHECKPOINT_EVERY = 0.0 if sign == "KILL" else 1e6
    sys.argv = ["mixbin", *arguments]
    main()
