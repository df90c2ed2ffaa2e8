"""Numbers as people read them: prices without exponents, and no digits that say nothing."""

import math

SMALLEST = 1e-4
"""Below this a number is written with an exponent: its zeros would be harder to read."""
LARGEST = 1e15
"""From here on it is, too."""


def readable(value: float, digits: int = 4) -> str:
    """A number with this many significant digits; digits before the point are never cut: 0.0512, 12.34, 1,234,568."""
    if value == 0 or not math.isfinite(value) or not SMALLEST <= abs(value) < LARGEST:
        return f"{value:.{digits}g}"
    before = math.floor(math.log10(abs(value))) + 1
    if before > 4:
        text = f"{value:,.{max(0, digits - before)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.0f}" if before >= digits else f"{value:.{digits}g}"


def in_form(value: float, form: str) -> str:
    """A number in a format; one with significant digits (such as ".4g") has no exponent where people would write none."""
    if form.startswith(".") and form.endswith("g"):
        return readable(value, int(form[1:-1]))
    return format(value, form)
