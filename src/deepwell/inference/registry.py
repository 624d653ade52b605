"""Every inference method by name."""

from deepwell.inference import dsvi, full_bayes, moving_window, nuts, plain_mcem
from deepwell.inference.method import Method

METHODS: dict[str, Method] = {
    "sghmc": moving_window.METHOD,
    "sghmc-naive": moving_window.METHOD,
    "mcem": plain_mcem.METHOD,
    "sghmc-bayes": full_bayes.DEEP_GP,
    "dsvi": dsvi.METHOD,
    "dsvi-decoupled": dsvi.METHOD,
    "bnn": full_bayes.NET,
    "nuts": nuts.METHOD,
}
VARIATIONAL = ("dsvi", "dsvi-decoupled")
SAMPLES_THETA = ("sghmc-bayes", "bnn", "nuts")
"""Methods that need priors on hyperparameters."""
SHARE_THETA = ("sghmc", "sghmc-naive", "mcem")
"""Methods that find one theta by MCEM of some kind."""
