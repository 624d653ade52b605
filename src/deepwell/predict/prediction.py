"""From the answers of the posterior samples to one predictive distribution."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from deepwell.data.scaling import Scaling
from deepwell.model.likelihoods import Marginal, Normals, Probabilities, Rates
from deepwell.predict.class_probabilities import ClassProbabilities
from deepwell.predict.count_mixture import CountMixture
from deepwell.predict.mixture import Mixture

Prediction = Mixture | CountMixture | ClassProbabilities

FAMILIES: dict[type, type[Mixture] | type[CountMixture] | type[ClassProbabilities]] = {
    Normals: Mixture,
    Rates: CountMixture,
    Probabilities: ClassProbabilities,
}
"""The predictive distribution of each family of p(y | x) under one sample."""


def average_over_samples(
    blocks: Iterable[Marginal], scaling: Scaling, single_target: bool, classes: Sequence[Any] | None
) -> Prediction:
    """p(y | x) averaged over the samples, for the rows of all blocks."""
    blocks = iter(blocks)
    first = next(blocks)
    return FAMILIES[type(first)].from_samples(chain([first], blocks), scaling, single_target, classes)
