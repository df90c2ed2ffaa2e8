"""The promises of a set, in the order in which they build on each other."""

from collections.abc import Sequence

import numpy as np

from mixbin import _validate as check
from mixbin.sets import BinarySet
from mixbin.testing.broken import Subject
from mixbin.testing.sets.directions import (
    check_epsilon_star,
    check_exchange_key,
    check_linear_oracle,
    check_no_alias,
    check_tangent,
)
from mixbin.testing.sets.identity import check_fingerprint
from mixbin.testing.sets.membership import check_contains, check_round, check_same_set, check_start
from mixbin.testing.sets.moves import check_moves
from mixbin.testing.sets.points import Points
from mixbin.testing.sets.projection import check_projection
from mixbin.testing.sets.vertices import check_listing, check_vertex


def check_set(
    theta_set: BinarySet,
    *,
    seed: int = 0,
    trials: int = 20,
    exchanges: bool | None = None,
    exact_cardinality: bool = True,
    others: Sequence[BinarySet] = (),
) -> None:
    """Check that a set keeps every promise of ``BinarySet``.

    ``contains`` says which points belong to the set; everything else is compared with it, by brute force where the set is small.
    Up to 10 entries every array of zeros and ones is tried, up to 2,000 binary points ``vertices`` lists them; of larger sets
    random points are compared. Check a small instance of your class, and a larger one.

    Parameters
    ----------
    theta_set : BinarySet
        An instance of the class to check.
    seed : int, default 0
        Draws the inputs; the messages repeat it.
    trials : int, default 20
        How many random inputs each promise is checked at.
    exchanges : bool, optional
        Whether a single move may switch one entry off and another one on. By default it may if ``moves`` yields such a move, or
        if no entry can be switched alone.
    exact_cardinality : bool, default True
        Whether ``cardinality`` is the number of binary points; False if it is an upper bound.
    others : sequence of BinarySet
        Sets with other contents, whose fingerprints must differ.

    Raises
    ------
    ConformanceError
        At the first broken promise. The message names the method, the promise, the input, what was expected and what came.

    Examples
    --------
    >>> import mixbin as mb
    >>> from mixbin.testing import check_set
    >>> check_set(mb.Budget(6, 2), others=[mb.Budget(6, 3), mb.Budget(7, 2)])

    >>> class Wrong(mb.Budget):
    ...     def project(self, x):
    ...         return 0.5 * super().project(x)
    >>> try:
    ...     check_set(Wrong(6, 2))
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    Wrong.project must return a point of the set.
    """
    subject = Subject(theta_set, check.whole("seed", seed, low=0))
    trials = check.whole("trials", trials, low=1)
    if not isinstance(theta_set, BinarySet):
        raise subject.broken("", "must be a BinarySet", {}, "a subclass of mixbin.sets.BinarySet", type(theta_set).__mro__)
    fingerprint = subject.call("fingerprint", {})
    random_state = np.random.get_state()  # noqa: NPY002
    points = Points(subject, theta_set, trials)
    check_contains(subject, points)
    check_projection(subject, points)
    check_same_set(subject, points)
    check_start(subject, points)
    check_round(subject, points)
    check_listing(subject, points, exact_cardinality)
    check_vertex(subject, points)
    check_linear_oracle(subject, points)
    check_tangent(subject, points)
    check_no_alias(subject, points)
    check_exchange_key(subject, points)
    check_moves(subject, points, exchanges)
    check_epsilon_star(subject, points)
    check_fingerprint(subject, theta_set, fingerprint, others)
    same = all(np.array_equal(a, b) for a, b in zip(random_state, np.random.get_state(), strict=True))  # noqa: NPY002
    promise = "must leave NumPy's global random numbers alone; draw from the generator that start is given"
    subject.require(same, "", promise, {}, "the state from before", "another state")
