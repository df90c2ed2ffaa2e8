"""The paper's theorems where they can be checked: theorem 1 on a grid, theorem 2 on quadratics with a known L."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mixbin as mb
from mixbin.penalties import Quadratic
from tests.instances import QuadraticG, quadratic

phi = Quadratic()
STEPS = 60
"""Grid points per unit; the grid contains all binary points."""


@cache
def grid(theta_set) -> tuple[np.ndarray, np.ndarray]:
    """All points of the set with coordinates j / STEPS, and phi there."""
    axis = np.arange(STEPS + 1) / STEPS
    points = np.stack(np.meshgrid(*[axis] * theta_set.size, indexing="ij"), axis=-1).reshape(-1, theta_set.size)
    if isinstance(theta_set, mb.Budget):
        points = points[np.isclose(points.sum(1), theta_set.k)]
    return points, np.array([phi.value(point) for point in points])


def values(G: QuadraticG, points: np.ndarray) -> np.ndarray:
    return 0.5 * np.einsum("ij,ij->i", points @ G.Q, points) + points @ G.c


def proof_epsilon(G: QuadraticG, points: np.ndarray, phis: np.ndarray, vertices: np.ndarray, rho: float = 0.4) -> float:
    """eps_bar of the proof of theorem 1, with infima and suprema over the grid's points."""
    outside = np.min(np.linalg.norm(points[:, None] - vertices[None], axis=2), axis=1) >= rho
    least_phi = phis[outside].min()
    gap = values(G, vertices).max() - values(G, points[outside]).min()
    near = 0.999 * (1 - rho) / G.lipschitz()
    return min(near, 0.999 * least_phi / gap) if gap > 0 else near


SETS = [mb.Hypercube(2), mb.Hypercube(3), mb.Budget(3, 1), mb.Budget(3, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("theta_set", SETS, ids=repr)
@pytest.mark.parametrize("kind", ["convex", "concave", "indefinite"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(it, marks=pytest.mark.slow) for it in range(1, 4))])
def test_theorem_1_same_global_minimisers(theta_set, kind, seed):
    G = quadratic(theta_set, seed, kind).function
    points, phis = grid(theta_set)
    vertices = points[np.all((points == 0) | (points == 1), axis=1)]
    epsilon = proof_epsilon(G, points, phis, vertices)
    for eps in (epsilon, epsilon / 10):
        penalised = values(G, points) + phis / eps
        best = points[np.argmin(penalised)]
        np.testing.assert_array_equal(best, vertices[np.argmin(values(G, vertices))])


def test_theorem_1_needs_a_small_epsilon():
    """The grid test can fail: with a weak penalty the minimiser is the relaxed one."""
    G = QuadraticG(np.eye(2), np.array([-0.5, -0.5]))
    points, phis = grid(mb.Hypercube(2))
    penalised = values(G, points) + phis / 100.0
    np.testing.assert_allclose(points[np.argmin(penalised)], 0.5, atol=0.02)


@given(seed=st.integers(0, 10_000), c=st.floats(0.05, 0.45), which=st.integers(0, 3))
def test_theorem_2_no_local_minimiser_near_a_vertex_but_the_vertex(seed, c, which):
    """Its proof's descent: from any non-binary point closer than c, G + phi/eps falls towards the vertex at once."""
    theta_set = [mb.Hypercube(6), mb.Budget(8, 3), mb.OneHot(3, 4), mb.Budget(7, 3, at_most=True)][which]
    G = quadratic(theta_set, seed).function
    rng = np.random.default_rng(seed)
    eps = 0.99 * (1 - 2 * c) / G.lipschitz()
    vertex = theta_set.vertex(rng.uniform(size=theta_set.shape)).astype(float)
    inside = theta_set.project(rng.uniform(size=theta_set.shape))
    near = vertex + min(0.99 * c / np.max(np.abs(inside - vertex)), 1.0) * (inside - vertex)
    assert theta_set.distance_to_binary(near) < c

    def penalised(theta):
        return G(theta)[0] + phi.value(theta) / eps

    for t in (1e-3, 1e-2, 0.1):
        assert penalised(near + t * (vertex - near)) < penalised(near)


@pytest.mark.parametrize("theta_set", [mb.Hypercube(6), mb.Budget(8, 3), mb.OneHot(3, 4)], ids=repr)
@pytest.mark.parametrize("seed", range(10))
def test_theorem_2_where_the_solver_ends(theta_set, seed):
    """A solver that ends closer than c < 1/2 at eps < (1 - 2c)/L ends exactly on a vertex."""
    problem = quadratic(theta_set, seed)
    c = 0.4
    eps = 0.99 * (1 - 2 * c) / problem.function.lipschitz()
    seen = []
    mb.relax_and_penalize(
        problem,
        theta0=theta_set.start(np.random.default_rng(seed)),
        epsilon0=eps,
        max_outer=1,
        inner_steps=500,
        relax_first=False,
        starts=1,
        seed=0,
        callbacks=[lambda event: seen.append(event.distance)],
    )
    assert seen[-1] >= c or seen[-1] < 1e-12
