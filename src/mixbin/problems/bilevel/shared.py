"""What the two back ends have in common beside the descriptions: checks of the sets, columns of the trace, errors."""

from typing import Any

from mixbin import _validate as check
from mixbin.errors import DivergedError
from mixbin.problems.bilevel.lower import FixedPoint, Train
from mixbin.sets import BinarySet, Box


def check_sets(theta_set: object, lam_set: object) -> Box:
    """The box of lam, which is empty if there is none; other things than sets are refused."""
    if not isinstance(theta_set, BinarySet):
        raise check.fail("theta_set", theta_set, "a set of binary variables", "such as Budget(100, 10) or Hypercube(20)")
    if lam_set is not None and not isinstance(lam_set, Box):
        raise check.fail("lam_set", lam_set, "a Box or None", "such as Box(0.0, 1.0)")
    return Box.empty() if lam_set is None else lam_set


def lower_info(lower: Any, residual: float, steps: float, *, fixed_steps: bool) -> dict[str, float]:
    """The columns for the trace; an error if the lower level ended far from its solution, unless its steps are given."""
    if not fixed_steps and not residual <= lower.limit:
        what = "moves by" if isinstance(lower, FixedPoint) else "has a gradient of"
        remedy = "raise max_steps, take another solver, or make inner better conditioned (a stronger penalty on w, rescaled data)"
        raise DivergedError(
            f"the lower level has not converged: after {steps:g} steps w still {what} {residual:.3g}, above limit = "
            f"{lower.limit:g}; {remedy}; a larger limit in lower accepts it"
        )
    return {"lower_steps": steps, "lower_residual": residual, "lower_converged": float(residual <= lower.tol)}


def singular(lower: Any) -> DivergedError:
    """The error for a linear system without a solution, so that w has no derivative in theta and lam."""
    if isinstance(lower, FixedPoint):
        what = "the fixed point of step is not isolated: I - dstep/dw is singular"
        remedy = "make step a contraction in w, for instance by weight decay"
    elif isinstance(lower, Train):
        what = (
            "the weights after the given steps are not near an isolated minimiser: the Hessian of inner is not positive definite"
        )
        remedy = "take FirstOrder() or Unrolled(q), or train to a tolerance with Minimise(...)"
    else:
        what = "the training objective has no isolated minimiser: its Hessian in w is singular or not positive definite"
        remedy = "add a ridge term to inner, such as 1e-6 * (w ** 2).sum() over all entries of w"
    return DivergedError(f"{what} at this theta and lam, so the trained w has no derivative; {remedy}")
