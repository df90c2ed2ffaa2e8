"""Pages: what a command left in a folder, as one HTML file that a person wants to look at."""

from mixbin.reporting.writing import write_report

__all__ = ["write_report"]
