"""How many random examples the tests of this folder try: a few in the suite, more with ``pytest --fuzz N``."""

import os


def amount(usual, share=1.0):
    """``usual`` examples, or that share of N; the examples of N are drawn anew in every run."""
    asked = int(os.environ.get("MIXBIN_FUZZ", "0"))
    return max(usual, round(share * asked)) if asked else usual


def derandomized():
    """Whether the examples are the same in every run."""
    return not int(os.environ.get("MIXBIN_FUZZ", "0"))
