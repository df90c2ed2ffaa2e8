"""Which labels of a table are probably wrong."""
