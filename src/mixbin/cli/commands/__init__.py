"""The work of each command, after its options have been read."""
