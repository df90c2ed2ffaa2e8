"""The sets that theta and lam live in (docs/maths.md, "Sets"), and the projection onto a general knapsack: geometry only."""

from mixbin.sets.base import BinarySet
from mixbin.sets.box import Box
from mixbin.sets.budget import Budget
from mixbin.sets.group_budget import GroupBudget
from mixbin.sets.hypercube import Hypercube
from mixbin.sets.kiwiel import project_knapsack
from mixbin.sets.knapsack import Knapsack
from mixbin.sets.one_hot import OneHot

__all__ = ["BinarySet", "Box", "Budget", "GroupBudget", "Hypercube", "Knapsack", "OneHot", "project_knapsack"]
