"""Which features of a table to keep."""
