"""Shared by all tests: hypothesis runs the same examples every time, so that a failure here is a failure everywhere."""

from hypothesis import settings

settings.register_profile("mixbin", derandomize=True, deadline=None)
settings.load_profile("mixbin")
