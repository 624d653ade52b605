"""DSVI of a deep GP in GPflux: steps of Adam on the ELBO of a minibatch, compiled by ``tf.function``, float64.

The outputs of a layer share kernel and inducing inputs, as in deepwell.
"""

import os
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import gpflow
import gpflux
import numpy as np
import tensorflow as tf
from serve import serve, shape, table


def main():
    """Build, then serve."""
    started = time.perf_counter()
    depth, rows, columns, width, inducing, batch = shape()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.keras.backend.set_floatx("float64")
    X, y = (part.astype(np.float64) for part in table(rows, columns))
    rng = np.random.default_rng(0)
    layers = []
    for level in range(depth):
        last = level == depth - 1
        inputs, outputs = columns if level == 0 else width, 1 if last else width
        kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(inputs) * inputs**0.5)
        points = gpflow.inducing_variables.InducingPoints(rng.standard_normal((inducing, inputs)))
        layers.append(
            gpflux.layers.GPLayer(
                gpflow.kernels.SharedIndependent(kernel, outputs),
                gpflow.inducing_variables.SharedIndependentInducingVariables(points),
                num_data=rows,
                num_latent_gps=outputs,
                mean_function=gpflow.mean_functions.Zero() if last else gpflow.mean_functions.Identity(),
                num_samples=None,
            )
        )
    likelihood = gpflux.layers.LikelihoodLayer(gpflow.likelihoods.Gaussian(0.1))
    model = gpflux.models.DeepGP(layers, likelihood, num_data=rows)
    optimiser = tf.optimizers.legacy.Adam(0.01) if hasattr(tf.optimizers, "legacy") else tf.optimizers.Adam(0.01)
    inputs, targets = tf.constant(X), tf.constant(y)

    @tf.function
    def step(index):
        with tf.GradientTape() as tape:
            loss = -model.elbo((tf.gather(inputs, index), tf.gather(targets, index)))
        variables = model.trainable_variables
        optimiser.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def run(count):
        for _ in range(count):
            loss = step(tf.constant(rng.integers(rows, size=batch)))
        float(loss)

    versions = {"gpflux": "0.4.5", "gpflow": gpflow.__version__, "tensorflow": tf.__version__}
    serve(run, versions, time.perf_counter() - started)


if __name__ == "__main__":
    main()
