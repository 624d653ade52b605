"""Likelihoods p(y | f): of numbers, of classes, of counts."""

from deepwell.model.likelihoods.base import LOG_TWO_PI, Marginal, Likelihood, gaussian_log_density
from deepwell.model.likelihoods.classes import LogitBernoulli, Probabilities, ProbitBernoulli, RobustMax, Softmax
from deepwell.model.likelihoods.counts import Poisson, Rates
from deepwell.model.likelihoods.numbers import Gaussian, HeteroscedasticGaussian, Normals, StudentT

__all__ = [
    "LOG_TWO_PI",
    "Marginal",
    "Gaussian",
    "HeteroscedasticGaussian",
    "Likelihood",
    "LogitBernoulli",
    "Normals",
    "Poisson",
    "Probabilities",
    "ProbitBernoulli",
    "Rates",
    "RobustMax",
    "Softmax",
    "StudentT",
    "gaussian_log_density",
]
