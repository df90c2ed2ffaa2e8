"""The published experiments, recomputed and set beside the numbers that the paper prints."""
