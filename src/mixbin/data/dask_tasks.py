"""The tasks of a pass over Dask blocks: each task makes some blocks by their recipes and computes from them.

A task for every step of a user's graph would keep the scheduler busy and the workers waiting.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mixbin.data.freed_memory import return_freed_memory_of_worker

SHARED = {-1, -2}
"""Stands for the blocks that need a step, if there are several."""


class Recipe:
    """How X and y of a block are made from its inputs: a small graph that one task computes."""

    def __init__(self, graph: dict[Any, Any], inputs: list[Any], outputs: tuple[Any, Any]) -> None:
        self.graph, self.inputs, self.outputs = graph, inputs, outputs

    def follow(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """X and y."""
        import dask

        # The inputs are wrapped in calls, since Dask would look for tasks and keys in the values themselves.
        given = {key: (partial(_itself, value),) for key, value in zip(self.inputs, inputs, strict=True)}
        X, y = dask.get(self.graph | given, list(self.outputs))
        return X, y


def _itself(value: Any) -> Any:
    return value


class Source(NamedTuple):
    """Where X and y of a block come from: they are the inputs, or made from them by the recipe."""

    recipe: Recipe | None
    inputs: list[Any]


Wanted = tuple[Source, tuple[Any, ...]]
"""A block, and the further arguments of the function that its task calls."""


def sources_of(X: Any, y: Any) -> list[Source]:
    """The source of each block: steps for this block alone are in its recipe, steps that others need too are its inputs."""
    from dask.core import flatten, get_deps, toposort
    from dask.delayed import Delayed
    from distributed import futures_of

    if futures_of((X, y)):
        both = (it.to_delayed(optimize_graph=False).ravel() for it in (X, y))
        return [Source(None, list(it)) for it in zip(*both, strict=True)]
    graph = X.dask.to_dict() | y.dask.to_dict()
    outputs = list(zip(flatten(X.__dask_keys__()), flatten(y.__dask_keys__()), strict=True))
    needs, users = get_deps(graph)
    of = {key: {number} for number, keys in enumerate(outputs) for key in keys}
    for key in reversed(toposort(graph, dependencies=needs)):
        blocks = of.get(key, set()).union(*(of[user] for user in users[key] if user in of))
        if blocks:
            of[key] = blocks if len(blocks) == 1 else SHARED
    recipes = [dict[Any, Any]() for _ in outputs]
    inputs = [dict[Any, Any]() for _ in outputs]
    for key, blocks in of.items():
        if blocks is not SHARED:
            (number,) = blocks
            recipes[number][key] = graph[key]
            inputs[number] |= {need: Delayed(need, graph) for need in needs[key] if of[need] is SHARED}
    return [
        Source(Recipe(recipe, list(given), keys), list(given.values()))
        for recipe, given, keys in zip(recipes, inputs, outputs, strict=True)
    ]


def applied(
    function: Callable[..., Any],
    merge: Callable[[list[Any]], Any] | None,
    recipes: Sequence[Recipe | None],
    arguments: Sequence[tuple[Any, ...]],
    weights: Any,
    *inputs: Any,
) -> list[Any]:
    """A task: ``function`` of some blocks, each with its arguments."""
    results, given = [], iter(inputs)
    for i, recipe in enumerate(recipes):
        first = () if weights is None else (weights[i],)
        X, y = (next(given), next(given)) if recipe is None else recipe.follow([next(given) for _ in recipe.inputs])
        results.append(function(X, y, *first, *arguments[i]))
    del X, y
    return_freed_memory_of_worker()
    return results if merge is None else merged(merge, results)


def merged(merge: Callable[[list[Any]], Any], *lists: list[Any]) -> list[Any]:
    """A node of the tree: one result from those of several tasks. Each is an argument: Dask 2025.4 finds no futures in lists."""
    results = [it for part in lists for it in part]
    return [merge(results) if len(results) > 1 else results[0]]
