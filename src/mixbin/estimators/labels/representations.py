"""The columns that the logistic regressions of ``LabelCleaner`` are trained on: standardised ones, and ones lifted by a kernel.

Each representation is fitted once, to all rows without their labels, and then applied to any rows. Its columns are uncorrelated
over the rows of ``fit``: a rotation leaves the ridge penalty as it is, and a minimiser with one scale per column then needs few
steps. The last column is constant, so large that its coefficient, the intercept, is hardly penalised.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from mixbin._validate import Floats

CLIP = 8.0
"""Standardised entries are clipped here, so that one wild entry does not decide a fit."""
WIDEST, COMPONENTS = 500, 300
"""A table with more than WIDEST columns is replaced by its COMPONENTS leading components, so that the fits
stay affordable."""
LANDMARKS = 300
"""Rows, drawn at random, whose kernels with a row are its lifted columns."""
SMALLEST = 1e-9
"""Directions with less than this share of the largest mean square are left out: they are rounding errors."""
KEPT_SQUARES = 0.9999
"""Lifted columns with the smallest mean squares are left out as long as this share of all squares is kept."""


@dataclass(frozen=True)
class Standardised:
    """Columns with mean 0 and variance 1, clipped and rotated."""

    mean: Floats
    inverse_deviation: Floats
    components: Floats | None
    rotation: Floats
    constant: float = 10.0

    def plain(self, X: Any) -> Floats:
        """The standardised columns themselves, or their leading components."""
        if issparse(X) and self.components is not None:
            # The mean is not subtracted from a wide sparse table: that would make every entry nonzero.
            return np.asarray(X.multiply(self.inverse_deviation[None, :]).tocsr() @ self.components)
        S = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
        with np.errstate(over="ignore"):  # what overflows is clipped
            S = np.clip((S - self.mean) * self.inverse_deviation, -CLIP, CLIP)
        return S if self.components is None else np.asarray(S @ self.components)

    def __call__(self, X: Any) -> Floats:
        """The columns of these rows."""
        return _with_constant(self.plain(X) @ self.rotation, self.constant)


@dataclass(frozen=True)
class Lifted:
    """Nystroem's columns for the kernel exp(-gamma |x - z|^2), with mean 0 and a mean squared length of 1."""

    standardised: Standardised
    landmarks: Floats
    gamma: float
    mean: Floats
    rotation: Floats
    constant: float = 3.0

    def __call__(self, X: Any) -> Floats:
        """The columns of these rows."""
        kernels = np.exp(-self.gamma * _squared_distances(self.standardised.plain(X), self.landmarks))
        return _with_constant((kernels - self.mean) @ self.rotation, self.constant)


def standardise(X: Any, seed: int) -> Standardised:
    """Fit the standardised columns. Constant columns become 0."""
    n = X.shape[0]
    # Columns are first divided by their largest entry, because squares of very large and very small numbers leave float64.
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel() if issparse(X) else np.abs(X).max(axis=0)
    unit = 1.0 / np.where(largest > 1e-300, largest, 1.0)
    scaled = X.multiply(unit[None, :]).tocsr() if issparse(X) else X * unit
    mean = np.asarray(scaled.mean(axis=0)).ravel()
    squares = scaled.multiply(scaled).mean(axis=0) if issparse(X) else None
    variance = scaled.var(axis=0) if squares is None else np.asarray(squares).ravel() - mean**2
    # A column whose variance is rounding error carries nothing that a regression could use.
    usable = variance > 1e-20
    inverse = np.where(usable, unit / np.sqrt(np.where(usable, variance, 1.0)), 0.0)
    mean = np.where(usable, mean / unit, 0.0)
    components = None
    if X.shape[1] > WIDEST:
        unreduced = Standardised(mean, inverse, None, np.eye(0))
        whole = X.multiply(inverse[None, :]).tocsr() if issparse(X) else unreduced.plain(X)
        leading = min(COMPONENTS, n - 1)
        components = np.ascontiguousarray(randomized_svd(whole, leading, random_state=seed)[2].T)
    first = Standardised(mean, inverse, components, np.eye(0))
    return Standardised(mean, inverse, components, _rotation(first.plain(X), 1.0))


def lift(standardised: Standardised, X: Any, gammas: tuple[float, ...], rng: np.random.RandomState) -> list[Lifted]:
    """Fit one representation for each gamma, which is in units of 1 / the median squared distance of two landmarks."""
    S = standardised.plain(X)
    landmarks = S[np.sort(rng.permutation(len(S))[:LANDMARKS])]
    distances = _squared_distances(landmarks, landmarks)
    apart = distances[np.triu_indices(len(landmarks), 1)]
    apart = apart[apart > 0]
    if not len(apart):
        return []
    to_landmarks, median, out = _squared_distances(S, landmarks), float(np.median(apart)), []
    for gamma in gammas:
        scale = gamma / median
        values, vectors = np.linalg.eigh(np.exp(-scale * distances))
        held = values > 1e-10 * values[-1]
        whiten = vectors[:, held] / np.sqrt(values[held])
        kernels = np.exp(-scale * to_landmarks)
        mean = kernels.mean(axis=0)
        Z = (kernels - mean) @ whiten
        length = float(np.sqrt(np.vdot(Z, Z) / len(Z)))
        if length > 0:
            rotation = whiten @ _rotation(Z, KEPT_SQUARES) / length
            out.append(Lifted(standardised, landmarks, scale, mean, rotation))
    return out


def _rotation(Z: Floats, share: float) -> Floats:
    """Directions in which the columns of Z are uncorrelated, largest mean square first, that hold this share of the squares."""
    values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
    values, vectors = values[::-1], vectors[:, ::-1]
    count = int(np.count_nonzero(values > SMALLEST * max(float(values[0]), np.finfo(float).tiny)))
    if share < 1.0 and count:
        count = min(count, int(np.searchsorted(np.cumsum(values[:count]) / values[:count].sum(), share)) + 1)
    # LAPACK leaves the sign of an eigenvector open; the largest entry is made positive.
    directions = vectors[:, :count]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(count)])
    return np.ascontiguousarray(directions * signs)


def _squared_distances(A: Floats, B: Floats) -> Floats:
    products = A @ B.T
    products *= -2.0
    products += np.einsum("ij,ij->i", A, A)[:, None]
    products += np.einsum("ij,ij->i", B, B)
    return np.asarray(np.maximum(products, 0.0, out=products))


def _with_constant(Z: Floats, constant: float) -> Floats:
    return np.column_stack([Z, np.full(len(Z), constant)])
