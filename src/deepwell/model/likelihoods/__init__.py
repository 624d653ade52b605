"""Likelihoods p(y | f): of numbers, of classes, of counts."""

from deepwell.model.likelihoods.base import Likelihood, Marginal
from deepwell.model.likelihoods.classes import LogitBernoulli, Probabilities, ProbitBernoulli, RobustMax, Softmax
from deepwell.model.likelihoods.counts import Poisson, Rates
from deepwell.model.likelihoods.numbers import Gaussian, HeteroscedasticGaussian, Normals, StudentT

__all__ = [
    "Gaussian",
    "HeteroscedasticGaussian",
    "Likelihood",
    "LogitBernoulli",
    "Marginal",
    "Normals",
    "Poisson",
    "Probabilities",
    "ProbitBernoulli",
    "Rates",
    "RobustMax",
    "Softmax",
    "StudentT",
]
