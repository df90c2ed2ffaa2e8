"""Where the numbers come from: tables in files, many tasks, and candidate rows in memory, in blocks or on Dask workers."""
