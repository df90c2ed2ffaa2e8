"""Numbers as people read them."""

import pytest

from mixbin._numbers import in_form, readable


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 4, "0"),
        (0.05123456, 4, "0.05123"),
        (12.3456, 4, "12.35"),
        (2031.4, 4, "2031"),
        (23147.9, 4, "23,148"),
        (1234567.8, 4, "1,234,568"),
        (-1234567.8, 6, "-1,234,568"),
        (123.456789, 6, "123.457"),
        (27861.93, 6, "27,861.9"),
        (20000.0, 6, "20,000"),
        (999999.5, 6, "1,000,000"),
        (0.00012345, 3, "0.000123"),
        (1.5e-7, 3, "1.5e-07"),
        (2e20, 3, "2e+20"),
        (float("inf"), 3, "inf"),
    ],
)
def test_readable(value, digits, text):
    assert readable(value, digits) == text


def test_in_form():
    assert in_form(181500.25, ".4g") == "181,500"
    assert in_form(1234, ",d") == "1,234"
    assert in_form(0.5, ".2f") == "0.50"
