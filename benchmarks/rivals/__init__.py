"""mixbin beside what a user would pick instead, family by family; ``python -m benchmarks.rivals`` runs it."""
