"""All families, in the order of the page."""

from benchmarks.rivals import black_boxes, exact, features, groups, hyper_cleaning, labels, rows, validation_rows

FAMILIES = {
    family.name: family
    for family in (
        *(rows.FAMILY, validation_rows.FAMILY, labels.LABELS, labels.LABEL_VALUES, features.FAMILY, groups.FAMILY),
        *(black_boxes.FAMILY, exact.FAMILY, hyper_cleaning.FAMILY),
    )
}
