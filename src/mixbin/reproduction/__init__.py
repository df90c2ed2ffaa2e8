"""The published experiments: what the paper printed, to set beside what is computed here."""
