"""The data of the published experiments: the synthetic tasks, and two UCI tables with their published splits."""

from mixbin.datasets.group_lasso import GroupLassoData, make_group_lasso
from mixbin.datasets.uci import RegressionData, load_blog, load_music

__all__ = ["GroupLassoData", "RegressionData", "load_blog", "load_music", "make_group_lasso"]
