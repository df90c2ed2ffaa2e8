"""Which rows to keep: regressions and classifiers, tables in memory and folders of Parquet files."""
