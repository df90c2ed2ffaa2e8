"""All families, in the order of the page."""

from benchmarks.rivals import features, labels, rows, validation_rows

FAMILIES = {
    family.name: family for family in (rows.FAMILY, validation_rows.FAMILY, labels.LABELS, labels.LABEL_VALUES, features.FAMILY)
}

NOT_YET = (
    "group structures",
    "black boxes (optuna, nevergrad, annealing)",
    "exact and global methods",
    "MNIST hyper-cleaning",
    "the published solver at its full length",
)
"""What the comparison is to hold and does not yet; the page says so."""
