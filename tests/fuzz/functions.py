"""Functions of a user that return odd things."""

import numpy as np
from hypothesis import strategies as st

import mixbin as mb
from tests.fuzz import strategies as odd

ODD_VALUES = {
    "complex": lambda v: complex(v),
    "a complex array": lambda v: np.array(v + 1j),
    "float32": np.float32,
    "longdouble": np.longdouble,
    "a huge longdouble": lambda v: np.longdouble("1e4000"),
    "no dimension": np.array,
    "one entry": lambda v: np.array([v]),
    "a list": lambda v: [v],
    "two entries": lambda v: np.array([v, v]),
    "nothing": lambda v: None,
    "text": str,
    "truth": lambda v: v > 0,
    "a whole number": lambda v: int(np.clip(v, -1e6, 1e6)),
    "a huge whole number": lambda v: 10**400,
    "nan": lambda v: np.nan,
    "inf": lambda v: np.inf,
    "-inf": lambda v: -np.inf,
    "1e300": lambda v: 1e300 * v,
    "1e308": lambda v: 1e308 if v > 0 else -1e308,
    "1e-300": lambda v: 1e-300 * v,
    "constant": lambda v: 1.0,
    "masked": lambda v: np.ma.masked,
    "a wrong number": lambda v: odd.Wrong(),
    "a shy object": lambda v: odd.Shy(),
    "wordy": lambda v: odd.Wordy(),
    "an object": lambda v: object(),
}
ODD_GRADIENTS = {
    **odd.HARMLESS,
    **odd.CHANGED,
    "complex with a part": lambda g: g + 1j,
    "times 1e300": lambda g: g * 1e300,
    "times 1e-300": lambda g: g * 1e-300,
    "times 1e150": lambda g: g * 1e150,
    "a wrong number": lambda g: [odd.Wrong()] * np.size(g),
    "shy objects": lambda g: np.array([odd.Shy()] * np.size(g), dtype=object),
    "1e308": lambda g: np.where(g > 0, 1.7e308, -1.7e308),
}


class Odd:
    """A quadratic that returns odd things: always, from some call on, only at binary points, or only between them."""

    def __init__(self, theta_set, n_lam, seed, spoil, when, first):
        rng = np.random.default_rng(seed)
        p = theta_set.size
        A = rng.normal(size=(p, p))
        self.Q, self.c, self.B = (A + A.T) / 2, rng.normal(size=p), rng.normal(size=(n_lam, p))
        self.n_lam, self.spoil, self.when, self.first, self.calls = n_lam, spoil, when, first, 0

    def __call__(self, theta, lam=None):
        with odd.quiet():
            return self.returned(theta, lam)

    def returned(self, theta, lam):
        self.calls += 1
        x = theta.ravel()
        gap = (np.zeros(0) if lam is None else np.ravel(lam)) - self.B @ x
        value = float(0.5 * x @ self.Q @ x + self.c @ x + 0.5 * gap @ gap)
        parts = [value, (self.Q @ x + self.c - self.B.T @ gap).reshape(theta.shape)]
        if lam is not None:
            parts.append(gap.reshape(np.shape(lam)))
        binary = bool(np.all((x == 0) | (x == 1)))
        here = {"always": True, "later": self.calls > self.first, "binary": binary, "between": not binary}[self.when]
        return self.spoiled(parts) if here else tuple(parts)

    def spoiled(self, parts):
        for place, how in self.spoil.items():
            if place == "parts":
                return {"a list": parts, "one more": (*parts, 0.0), "one less": tuple(parts[:1]), "a number": parts[0]}[how]
            k = {"value": 0, "grad_theta": 1, "grad_lam": 2}[place]
            if k < len(parts):
                parts[k] = (ODD_VALUES if k == 0 else ODD_GRADIENTS)[how](parts[k])
        return tuple(parts)


@st.composite
def odd_problems(draw, most=6, spoiled=True):
    theta_set = draw(odd.good_sets(most))
    n_lam = draw(st.sampled_from([0, 0, 1, 2]))
    box = None
    if n_lam:
        log = draw(st.booleans())
        low, high = draw(st.sampled_from([(0.1, 2.0), (1.0, 1.0), (1e-6, 1e6), (1e-300, 1e300), (0.5, 1e308)]))
        shape = () if n_lam == 1 and draw(st.booleans()) else (n_lam,)
        box = mb.Box(np.full(shape, low), np.full(shape, high), log=log)
        n_lam = box.size
    gradients = st.sampled_from(sorted(ODD_GRADIENTS))
    spoil = {
        "value": st.sampled_from(sorted(ODD_VALUES)),
        "grad_theta": gradients,
        "grad_lam": gradients,
        "parts": st.sampled_from(["a list", "one more", "one less", "a number"]),
    }
    places = draw(st.lists(st.sampled_from(["value", "grad_theta", "grad_theta", "grad_lam", "parts"]), max_size=2, unique=True))
    chosen = {place: draw(spoil[place]) for place in places} if spoiled else {}
    when = draw(st.sampled_from(["always", "later", "binary", "between"]))
    function = Odd(theta_set, n_lam, draw(st.integers(0, 20)), chosen, when, draw(st.integers(0, 30)))
    value = (lambda *at: function(*at)[0]) if draw(st.booleans()) and "parts" not in chosen else None
    return mb.FunctionProblem(function, theta_set, box, value=value)


ABOUT_RETURNS = ("value", "grad_theta", "grad_lam", "function", "theta0", "lam0", "evaluate")
