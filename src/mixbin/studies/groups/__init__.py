"""Which features belong together in many regressions."""
