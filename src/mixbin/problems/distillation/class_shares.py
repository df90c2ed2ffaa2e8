"""Which selections of rows are allowed: a number of rows, and how far the classes may shrink."""

import math

import numpy as np

from mixbin import _validate as check
from mixbin.problems.distillation.multinomial import Codes
from mixbin.sets import Budget, GroupBudget, Hypercube
from mixbin.sets.budget import resolve_budget


def rows_to_choose(y: Codes, budget: int | float | None, class_shares: float | None) -> Budget | GroupBudget | Hypercube:
    """The set of the row weights.

    With a budget k and class_shares s, class c of n_c among m rows keeps from (1 - s) k n_c / m to (1 + s) k n_c / m rows,
    rounded outwards, but at least one row where the budget allows one for every class. Without a budget it keeps at least s n_c
    rows.
    """
    m = len(y)
    k = None if budget is None else resolve_budget("budget", budget, m)
    if class_shares is None:
        return Hypercube(m) if k is None else Budget(m, k)
    remedy = "0.2 keeps the share of every class within 20 %; None lets the loss decide"
    share = check.real("class_shares", class_shares, low=0.0, high=1.0, remedy=remedy)
    sizes = np.bincount(y).tolist()
    if k is None:
        return GroupBudget(y, [max(1, math.ceil(share * size)) for size in sizes], sizes)
    one = 1 if k >= len(sizes) else 0
    low = [max(one, math.floor((1.0 - share) * k * size / m)) for size in sizes]
    high = [max(one, math.ceil((1.0 + share) * k * size / m)) for size in sizes]
    # A row for each of many small classes can exceed the budget: then the largest classes give the rows.
    while sum(low) > k:
        low[int(np.argmax(low))] -= 1
    return GroupBudget(y, low, high, k)
