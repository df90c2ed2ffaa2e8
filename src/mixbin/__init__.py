"""Mixed-binary hyperparameter optimisation: relax, penalise, and get an answer that is exactly binary.

Every public name is on this page and loaded when it is first used, so that ``import mixbin`` stays light.
"""

from typing import TYPE_CHECKING

from mixbin._lazy import lazily
from mixbin._version import __version__

_HOME = {
    "Box": "mixbin.sets",
    "Budget": "mixbin.sets",
    "GroupBudget": "mixbin.sets",
    "Hypercube": "mixbin.sets",
    "Knapsack": "mixbin.sets",
    "OneHot": "mixbin.sets",
    "Logarithmic": "mixbin.penalties",
    "Quadratic": "mixbin.penalties",
    "Evaluation": "mixbin.problem",
    "FunctionProblem": "mixbin.problem",
    "Problem": "mixbin.problem",
    "FrankWolfe": "mixbin.solvers",
    "ProjectedGradient": "mixbin.solvers",
    "Saga": "mixbin.solvers",
    "SpectralGradient": "mixbin.solvers",
    "StochasticGradient": "mixbin.solvers",
    "enumerate_binary": "mixbin.methods",
    "relax_and_penalize": "mixbin.methods",
    "relax_and_round": "mixbin.methods",
    "Certificate": "mixbin.certificate",
    "certify": "mixbin.certificate",
    "GradientCheck": "mixbin.gradient_check",
    "check_gradient": "mixbin.gradient_check",
    "Event": "mixbin.progress",
    "ProgressDisplay": "mixbin.progress",
    "Result": "mixbin.result",
    "Status": "mixbin.result",
    "Trace": "mixbin.result",
    "BestSubset": "mixbin.problems",
    "Proof": "mixbin.problems",
    "prove_best_subset": "mixbin.problems",
    "GroupLassoStructure": "mixbin.problems",
    "PublishedGradient": "mixbin.problems",
    "QuadraticProblem": "mixbin.problems",
    "RidgeDistillation": "mixbin.problems",
    "SoftmaxDistillation": "mixbin.problems",
    "FirstOrder": "mixbin.problems.bilevel",
    "FixedPoint": "mixbin.problems.bilevel",
    "Implicit": "mixbin.problems.bilevel",
    "Minimise": "mixbin.problems.bilevel",
    "OwnSolver": "mixbin.problems.bilevel",
    "Unrolled": "mixbin.problems.bilevel",
    "bilevel": "mixbin.problems.bilevel",
    "ParquetFolder": "mixbin.data.parquet",
    "local_workers": "mixbin.data.workers",
    "BudgetCurve": "mixbin.problems.distillation.budget_curve",
    "budget_curve": "mixbin.estimators",
    "DistillationClassifier": "mixbin.estimators",
    "DistillationRegressor": "mixbin.estimators",
    "FeatureSelector": "mixbin.estimators",
    "GroupCurve": "mixbin.estimators",
    "GroupStructureRegressor": "mixbin.estimators",
    "LabelCleaner": "mixbin.estimators",
    "TableEncoder": "mixbin.estimators",
    "suggest_n_groups": "mixbin.estimators",
    "paper_problem": "mixbin.reproduction.paper",
    "paper_settings": "mixbin.reproduction.paper",
    "CannotWrite": "mixbin.errors",
    "CheckpointMismatch": "mixbin.errors",
    "ClusterLost": "mixbin.errors",
    "ConvergenceWarning": "mixbin.errors",
    "DivergedError": "mixbin.errors",
    "GradientWarning": "mixbin.errors",
    "InfeasibleSet": "mixbin.errors",
    "InvalidInput": "mixbin.errors",
}
_PACKAGES = (
    "certificate",
    "checkpoint",
    "data",
    "datasets",
    "errors",
    "estimators",
    "methods",
    "penalties",
    "plot",
    "problem",
    "problems",
    "progress",
    "reproduction",
    "result",
    "sets",
    "solvers",
    "testing",
    "torch",
)

# Written out, because type checkers do not compute it; a test compares it with _HOME.
__all__ = [
    "Box",
    "Budget",
    "GroupBudget",
    "Hypercube",
    "Knapsack",
    "OneHot",
    "Logarithmic",
    "Quadratic",
    "Evaluation",
    "FunctionProblem",
    "Problem",
    "FrankWolfe",
    "ProjectedGradient",
    "Saga",
    "SpectralGradient",
    "StochasticGradient",
    "enumerate_binary",
    "relax_and_penalize",
    "relax_and_round",
    "Certificate",
    "certify",
    "GradientCheck",
    "check_gradient",
    "Event",
    "ProgressDisplay",
    "Result",
    "Status",
    "Trace",
    "BestSubset",
    "Proof",
    "prove_best_subset",
    "GroupLassoStructure",
    "PublishedGradient",
    "QuadraticProblem",
    "RidgeDistillation",
    "SoftmaxDistillation",
    "FirstOrder",
    "FixedPoint",
    "Implicit",
    "Minimise",
    "OwnSolver",
    "Unrolled",
    "bilevel",
    "ParquetFolder",
    "local_workers",
    "BudgetCurve",
    "budget_curve",
    "DistillationClassifier",
    "DistillationRegressor",
    "FeatureSelector",
    "GroupCurve",
    "GroupStructureRegressor",
    "LabelCleaner",
    "TableEncoder",
    "suggest_n_groups",
    "paper_problem",
    "paper_settings",
    "CannotWrite",
    "CheckpointMismatch",
    "ClusterLost",
    "ConvergenceWarning",
    "DivergedError",
    "GradientWarning",
    "InfeasibleSet",
    "InvalidInput",
    "__version__",
]

if TYPE_CHECKING:
    from mixbin import certificate as certificate
    from mixbin import checkpoint as checkpoint
    from mixbin import data as data
    from mixbin import datasets as datasets
    from mixbin import errors as errors
    from mixbin import estimators as estimators
    from mixbin import methods as methods
    from mixbin import penalties as penalties
    from mixbin import plot as plot
    from mixbin import problem as problem
    from mixbin import problems as problems
    from mixbin import progress as progress
    from mixbin import reproduction as reproduction
    from mixbin import result as result
    from mixbin import sets as sets
    from mixbin import solvers as solvers
    from mixbin import testing as testing
    from mixbin import torch as torch
    from mixbin.certificate import Certificate, certify
    from mixbin.data.parquet import ParquetFolder
    from mixbin.data.workers import local_workers
    from mixbin.errors import (
        CannotWrite,
        CheckpointMismatch,
        ClusterLost,
        ConvergenceWarning,
        DivergedError,
        GradientWarning,
        InfeasibleSet,
        InvalidInput,
    )
    from mixbin.estimators import (
        DistillationClassifier,
        DistillationRegressor,
        FeatureSelector,
        GroupCurve,
        GroupStructureRegressor,
        LabelCleaner,
        TableEncoder,
        budget_curve,
        suggest_n_groups,
    )
    from mixbin.gradient_check import GradientCheck, check_gradient
    from mixbin.methods import enumerate_binary, relax_and_penalize, relax_and_round
    from mixbin.penalties import Logarithmic, Quadratic
    from mixbin.problem import Evaluation, FunctionProblem, Problem
    from mixbin.problems import (
        BestSubset,
        GroupLassoStructure,
        Proof,
        PublishedGradient,
        QuadraticProblem,
        RidgeDistillation,
        SoftmaxDistillation,
        prove_best_subset,
    )
    from mixbin.problems.bilevel import FirstOrder, FixedPoint, Implicit, Minimise, OwnSolver, Unrolled, bilevel
    from mixbin.problems.distillation.budget_curve import BudgetCurve
    from mixbin.progress import Event, ProgressDisplay
    from mixbin.reproduction.paper import paper_problem, paper_settings
    from mixbin.result import Result, Status, Trace
    from mixbin.sets import Box, Budget, GroupBudget, Hypercube, Knapsack, OneHot
    from mixbin.solvers import FrankWolfe, ProjectedGradient, Saga, SpectralGradient, StochasticGradient
else:  # hidden from type checkers, which would take any name for one of mixbin's
    __getattr__, __dir__ = lazily(__name__, {**_HOME, "__version__": "mixbin._version", **dict.fromkeys(_PACKAGES, ".")})
