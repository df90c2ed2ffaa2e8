"""How many random examples the tests of this folder try: a few in the suite, more with ``pytest --fuzz N``."""

import os

from hypothesis import HealthCheck, Phase, settings


def amount(usual, share=1.0):
    """``usual`` examples, or that share of N; the examples of N are drawn anew in every run."""
    asked = int(os.environ.get("MIXBIN_FUZZ", "0"))
    return max(usual, round(share * asked)) if asked else usual


def derandomized():
    """Whether the examples are the same in every run."""
    return not int(os.environ.get("MIXBIN_FUZZ", "0"))


def examples(usual, share):
    """The settings of a test that tries ``usual`` examples, the same in every run, or that share of N, drawn anew."""
    return settings(
        max_examples=amount(usual, share),
        derandomize=derandomized(),
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
