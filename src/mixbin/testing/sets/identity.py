"""What ``fingerprint`` promises, by which a checkpoint recognises the set that it belongs to."""

import copy
from collections.abc import Iterable

from mixbin.sets import BinarySet
from mixbin.testing.broken import Subject


def check_fingerprint(subject: Subject, theta_set: BinarySet, before: object, others: Iterable[BinarySet]) -> None:
    """A text, equal for equal contents, not changed by use, and different for sets with other contents."""
    subject.require(isinstance(before, str) and before != "", "fingerprint", "must return a text", {}, "a str", before)
    after = subject.call("fingerprint", {})
    promise = "must not change when the set is used; leave what the set keeps for later, such as a cache, out of the fingerprint"
    subject.require(before == after, "fingerprint", promise, {}, before, after)
    twin = copy.deepcopy(theta_set).fingerprint()
    subject.require(twin == before, "fingerprint", "must be equal for a copy of the set", {}, before, twin)
    for other in others:
        promise, expected = f"must differ from that of {other!r}, another set", f"anything but {before}"
        subject.require(other.fingerprint() != before, "fingerprint", promise, {}, expected, other.fingerprint())
