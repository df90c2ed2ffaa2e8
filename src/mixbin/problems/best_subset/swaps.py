"""G after every exchange of one feature of a model for another, from one table (docs/maths.md, "Swaps of features").

Around a trained model, G is (for squared loss) or resembles (for logistic loss) a quadratic function of the coefficients:

    h (v - 2 b'w + w'(A + g I) w)

Its minimum over the features S has the inverse P = (A_SS + g I)^-1 and the coefficients w = P b_S. To take feature i out raises
the minimum by h w_i^2 / P_ii. To put feature j in lowers it by h r_j^2 / q_j, where r = b - A_:S w and
q_j = A_jj + g - A_jS P A_Sj. Doing both changes r_j and q_j by terms with C = P A_S:, so the values of all exchanges cost k^2 p
multiply-adds once A_S: is known.
"""

from typing import NamedTuple

import numpy as np

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.refusals import enough_gamma


class QuadraticModel(NamedTuple):
    """The quadratic function around a model with the features S."""

    value: float
    scale: float
    """The factor h: 1 for squared loss, 1/2 for logistic loss."""
    support: Indices
    rows: Floats
    """A_S:, of shape (k, p)."""
    diagonal: Floats
    """A_jj for all p features."""
    coef: Floats
    """w, of shape (targets, k)."""
    slopes: Floats
    """r, of shape (targets, p); its entries in S are not used."""
    gamma: float

    @enough_gamma()
    def inverse(self) -> Floats:
        """P."""
        A = self.rows[:, self.support]
        A = 0.5 * (A + A.T)
        A[np.diag_indices_from(A)] += self.gamma
        return np.asarray(np.linalg.inv(A))

    def removals(self) -> Floats:
        """The value after taking out each feature of S."""
        return np.asarray(self.value + self.scale * np.square(self.coef).sum(axis=0) / np.diag(self.inverse()))

    def additions(self) -> Floats:
        """The value after putting in each of the p features; inf for those of S."""
        left = self.diagonal + self.gamma - np.einsum("ij,ij->j", self.rows, self.inverse() @ self.rows)
        out = self.value - self.scale * np.square(self.slopes).sum(axis=0) / np.maximum(left, self.gamma)
        out[self.support] = np.inf
        return np.asarray(out)

    def exchanges(self) -> Floats:
        """The value after each exchange: entry (i, j) takes out feature S[i] and puts in feature j; inf where j is in S."""
        if self.support.size == 0:
            return np.empty((0, self.diagonal.size))
        P = self.inverse()
        C = P @ self.rows
        # What remains of a column's square is at least gamma; rounding must not bring it below.
        left = np.maximum(self.diagonal + self.gamma - np.einsum("ij,ij->j", self.rows, C), self.gamma)
        own = np.diag(P)
        cost = np.square(self.coef).sum(axis=0) / own
        per = C / own[:, None]
        # sum over targets of (r_j + C_ij w_i / P_ii)^2, in place because this table is the largest array of a search
        out = self.coef.T @ self.slopes
        out *= 2.0
        out += per * cost[:, None] * own[:, None]
        out *= per
        out += np.square(self.slopes).sum(axis=0)
        per *= C
        per += left
        out /= per
        np.subtract(cost[:, None], out, out=out)
        out *= self.scale
        out += self.value
        out[:, self.support] = np.inf
        return np.asarray(out)
