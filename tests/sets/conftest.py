"""Hypothesis runs the same examples every time, however this folder is collected."""

from hypothesis import settings

settings.register_profile("mixbin", derandomize=True, deadline=None)
settings.load_profile("mixbin")
