"""Make the tables of the quick starts about labels and columns: wine.csv and diabetes.csv, from data that scikit-learn carries.

python docs/quick-start/make_tables.py
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_wine

HERE = Path(__file__).resolve().parent
CHANGED = (3, 17, 29, 44, 58, 71, 80, 96, 113, 127, 141, 150, 166)
"""Rows of wine.csv whose label is another one than in scikit-learn."""


def main() -> None:
    """Write both tables."""
    wine = load_wine(as_frame=True)
    names = np.array(["barolo", "grignolino", "barbera"])
    table = wine.data.rename(columns={"od280/od315_of_diluted_wines": "od280"})
    kind = wine.target.to_numpy().copy()
    order = np.random.default_rng(0).permutation(len(kind))
    table, kind = table.iloc[order], kind[order]
    kind[list(CHANGED)] = (kind[list(CHANGED)] + 1 + np.arange(len(CHANGED)) % 2) % 3
    table.insert(0, "kind", names[kind])
    table.to_csv(HERE / "wine.csv", index=False)

    diabetes = load_diabetes(as_frame=True, scaled=False)
    table = diabetes.data.copy()
    rng = np.random.default_rng(0)
    for i in range(20):  # columns that say nothing
        table[f"noise{i:02d}"] = rng.normal(size=len(table)).round(3)
    table["progress"] = diabetes.target
    table.to_csv(HERE / "diabetes.csv", index=False)


if __name__ == "__main__":
    main()
