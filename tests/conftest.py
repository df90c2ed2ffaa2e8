"""Shared by all tests: hypothesis runs the same examples every time, so that a failure here is a failure everywhere."""

import os
import signal
import threading

from hypothesis import settings

settings.register_profile("mixbin", derandomize=True, deadline=None)
settings.register_profile("usual", settings.get_profile("mixbin"), max_examples=30)
settings.register_profile("quick", settings.get_profile("mixbin"), max_examples=10)
settings.load_profile("mixbin")

# A background job of a script ignores Ctrl-C, and so would every process that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--fuzz", type=int, default=0, metavar="N", help="random examples over the public API, and a share of that elsewhere"
    )


def pytest_configure(config):
    # All examples of a property are CI's, which asks for "ci or hypothesis".
    if "not slow" in config.getoption("markexpr"):
        settings.load_profile("quick")
    elif "not ci" in config.getoption("markexpr"):
        settings.load_profile("usual")
    # With a worker for each core, threads of BLAS beside them wait for one another and burn the cores meanwhile.
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Read where the tests of tests/fuzz are made, before any of them runs.
    os.environ["MIXBIN_FUZZ"] = str(config.getoption("--fuzz"))
