"""Expand J around one selection, exactly: how the closed form changes when rows are taken out or put in.

The equations are those of docs/maths.md, "Exchanges of rows".

With an intercept among the features, a = (x, 1), the lower level's normal matrix is N = 1/m sum v_i a_i a_i' + diag(s, .., s, 0).
Rows A that gain the weights D change it by A' D A, so by the Woodbury identity

    coefficients' = coefficients + P A' C,   C = (D^-1 + G)^-1 R,   P = N^-1,  G = A P A',  R = the residuals of the rows,
    P' = P - P A' (D^-1 + G)^-1 A P,

and J, quadratic in the coefficients, changes by <A P grad, C> + 1/2 tr(C' B C) with B = A P H P A'.
"""

from typing import NamedTuple

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.work import Work


class RowTerms(NamedTuple):
    """What a change of J needs to know about the rows that gain or lose weight."""

    a: Floats  # (rows, d + 1): relative to the expansion's origin, with a 1 appended
    P_a: Floats  # (rows, d + 1)
    residual: Floats  # (rows, e): y - prediction
    slope: Floats  # (rows, e): a' P grad


class Expansion(NamedTuple):
    """J as a quadratic function of the coefficients, around those of one selection."""

    origin: Floats  # (d + e,): the point that rows are relative to
    coef: Floats  # (d + 1, e): the intercept last
    value: float
    P: Floats  # (d + 1, d + 1): the inverse of the normal matrix
    H: Floats  # (d + 1, d + 1): the Hessian of J
    grad: Floats  # (d + 1, e): its gradient

    def terms(self, zhat: Floats, *, none: bool = False, work: Work | None = None) -> RowTerms:
        """The terms of the rows ``zhat`` = z - origin; with ``none`` an empty row is appended, which stands for no row at all."""
        d = len(self.P) - 1
        if work is not None:
            work.add(len(zhat) * (d + 1) * (d + 1 + 2 * self.coef.shape[1]))
        a = np.empty((len(zhat) + none, d + 1))
        a[: len(zhat), :d] = zhat[:, :d]
        a[: len(zhat), d] = 1.0
        a[len(zhat) :] = 0.0
        residual = -(a @ self.coef)
        residual[: len(zhat)] += zhat[:, d:]
        P_a = a @ self.P
        return RowTerms(a, P_a, residual, P_a @ self.grad)

    def changed(self, rows: RowTerms, gains: Floats, work: Work | None = None) -> "Expansion":
        """The expansion after each of these rows has gained its weight, which is negative for a row taken out."""
        if work is not None:
            (k, n), e = rows.a.shape, self.coef.shape[1]
            # In this order: the matrix, its factor, the solve, and the products for step, bend and P.
            work.add(k * k * n + k**3 // 3 + k * k * (n + e) + k * n * e + n * n * e + k * n * n)
        inner = rows.a @ rows.P_a.T + np.diag(1.0 / gains)
        solved = np.linalg.solve(inner, np.hstack([rows.residual, rows.P_a]))
        step = rows.P_a.T @ solved[:, : self.coef.shape[1]]
        bend = self.H @ step
        P = self.P - rows.P_a.T @ solved[:, self.coef.shape[1] :]
        value = self.value + float(np.vdot(self.grad, step) + 0.5 * np.vdot(step, bend))
        # Rounding leaves P slightly asymmetric, which many updates in a row would amplify.
        return self._replace(coef=self.coef + step, value=value, P=0.5 * (P + P.T), grad=self.grad + bend)
