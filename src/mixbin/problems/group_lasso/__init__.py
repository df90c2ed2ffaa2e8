"""Which features belong together: the structure of a group lasso, shared by many regression tasks."""

from mixbin.problems.group_lasso.structure import GroupLassoStructure

__all__ = ["GroupLassoStructure"]
