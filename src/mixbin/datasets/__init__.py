"""The data of the published experiments, split as they were."""

from mixbin.datasets.uci import RegressionData, load_blog, load_music

__all__ = ["RegressionData", "load_blog", "load_music"]
