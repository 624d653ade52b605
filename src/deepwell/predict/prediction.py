"""From what the samples say to one predictive distribution, of the kind that y has."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deepwell.data.scaling import Scaling
from deepwell.model.likelihoods import Marginal, Rates
from deepwell.predict.class_probabilities import ClassProbabilities, average
from deepwell.predict.count_mixture import CountMixture
from deepwell.predict.mixture import Mixture

Prediction = Mixture | CountMixture | ClassProbabilities


def prediction(
    blocks: Iterable[Marginal], scaling: Scaling, single_target: bool, classes: Sequence[Any] | None
) -> Prediction:
    """The predictive distribution of the rows of all blocks."""
    if classes is not None:  # averaged over the samples block by block: nothing else is asked of them
        averages = zip(*(average(block.log_probabilities) for block in blocks), strict=True)
        probabilities, expected_entropy = (np.concatenate(part) for part in averages)
        return ClassProbabilities(probabilities, expected_entropy, classes)
    parts = list(blocks)
    joined = type(parts[0])(*(_over_rows(same) for same in zip(*parts, strict=True)))
    if isinstance(joined, Rates):
        rates, dispersion = (np.asarray(part) for part in (joined.rates, joined.dispersion))
        return CountMixture(rates, dispersion, _weights(joined.log_weights)[0, 0, 0], single_target)
    return Mixture(joined.mean, joined.variance, joined.noise, scaling, single_target, _weights(joined.log_weights))


def _over_rows(parts: Sequence[Any]) -> Any:
    """Blocks joined along the rows; what is alike in all rows, and so has one, is in every block the same."""
    first = parts[0]
    return first if len(parts) > 1 and first.shape[1] == 1 else np.concatenate(parts, axis=1)


def _weights(log_weights: Any) -> np.ndarray:
    weights = np.exp(np.asarray(log_weights, np.float64))
    return weights / np.sum(weights, -1, keepdims=True)
