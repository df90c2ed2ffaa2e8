"""What came out, in sentences made from the facts of the record."""

from collections.abc import Mapping
from typing import Any


def verdict(facts: Mapping[str, Any]) -> str:
    """What the guard found and what follows from it."""
    doubtful, found = facts["suspects"], facts["guard"]
    rare, held = facts["rare_classes"], facts["held_back"]
    if not doubtful:
        said = "No label is doubtful, so all rows are kept."
    elif found is not None and not found["above_chance"]:
        said = (
            "All rows are kept: predictions from the columns hit no more labels than chance would, so these labels cannot "
            "be judged. Add rows or columns."
        )
    elif found is not None:
        change = f"{100 * found['gain']:+.2f} points (standard error {100 * found['standard_error']:.2f})"
        measured = "the share of held-out labels that a model hits, all classes counting the same"
        if found["accepted"]:
            said = f"The {doubtful - held:,} rows are dropped: without them {measured}, changes by {change}."
        elif found.get("plain_gain", 0.0) < 0.0 < found["gain"]:
            said = (
                f"All rows are kept: dropping the doubtful ones changes {measured}, by {change}, but with every row counting the "
                f"same by {100 * found['plain_gain']:+.2f} points. The doubtful rows are still worth a look."
            )
        else:
            said = (
                f"All rows are kept: dropping the doubtful ones changes {measured}, by {change}. That is too little to be sure "
                "that it helps. The doubtful rows are still worth a look."
            )
    elif facts["guarded"]:
        said = "All rows are kept, because no class may lose more."
    else:
        said = f"The {doubtful - held:,} doubtful rows are dropped without asking whether that helps (--no-guard)."
    if held:
        share = f"{100 * facts['max_class_loss']:g}"
        said += (
            f" {held:,} more are kept so that no class loses more than {share}\N{NO-BREAK SPACE}% of its rows (--max-class-loss)."
        )
    if rare:
        said += f" {_classes(len(rare))} too few rows to be judged; these rows are kept."
    return said


def _classes(count: int) -> str:
    return "One class has" if count == 1 else f"{count:,} classes have"
