"""A kernel, a likelihood, a layer and a method from outside the package: each is fitted, saved and loaded."""

from typing import Annotated, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import deepwell
from deepwell.inference.deep_gp_posteriors import SharedTheta, shared_theta
from deepwell.inference.keys import iteration_key
from deepwell.inference.method import Method, NumericalIssues, Phase
from deepwell.inference.problem import deep_gp_problem, log_joint
from deepwell.inference.registry import register, unregister
from deepwell.model.deep_gp import DeepGP
from deepwell.model.kernels import Kernel, SquaredExponential
from deepwell.model.layers import Layer, Projection
from deepwell.model.likelihoods import Gaussian, Likelihood, Normals
from deepwell.model.means import Identity, Mean, Zero
from deepwell.model.parameters import CONSTANT
from deepwell.model.priors import LogNormal, noise_prior, variance_prior
from deepwell.model.random_features import random_feature_layer
from deepwell.numerics.packing import Packing
from deepwell.numerics.randomness import standard_normal

SHORT = {"preset": "quick", "num_inducing": 12, "burn_in": 300, "num_samples": 20, "spacing": 5}


def wave(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (rows, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(rows)


def saved_and_loaded(model, path):
    """The same predictions from the file."""
    X = np.linspace(-4.0, 4.0, 30)[:, None]
    model.save(path)
    loaded = deepwell.load(path)
    np.testing.assert_array_equal(loaded.predict(X, return_std=True), model.predict(X, return_std=True))
    assert loaded.settings == model.settings
    return loaded


def error(model):
    X, _ = wave(200, seed=1)
    return np.sqrt(np.mean((model.predict(X) - np.sin(2.0 * X[:, 0])) ** 2))


@final
class Periodic(Kernel):
    """k(x, z) = exp(-2 sum_d sin^2(pi (x_d - z_d) / period) / lengthscale^2)   (MacKay 1998)."""

    log_period: Annotated[Float[Array, ""], LogNormal(2.0, 0.5)]
    log_lengthscale: Annotated[Float[Array, ""], LogNormal(1.0, 0.5)]

    def __call__(self, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        sines = jnp.sin(jnp.pi * (X[:, None] - Z[None]) / jnp.exp(self.log_period))
        return jnp.exp(-2.0 * jnp.sum(sines**2, -1) / jnp.exp(2.0 * self.log_lengthscale))


def periodic(period):
    return Periodic(jnp.asarray(np.log(period), float), jnp.zeros((), float))


def test_an_own_kernel(tmp_path):
    """It extrapolates a wave; the same in a sum, and in every layer of a deep GP with the hidden variance small."""
    X, y = wave()
    period = np.pi / np.std(X)  # that of y, in standardised inputs
    model = deepwell.fit(X, y, depth=1, kernel=periodic(period), **SHORT)
    saved_and_loaded(model, tmp_path / "m.deepwell")
    far = np.linspace(6.0, 9.0, 30)[:, None]
    assert np.sqrt(np.mean((model.predict(far) - np.sin(2.0 * far[:, 0])) ** 2)) < 0.3
    deep = deepwell.fit(X, y, kernel=periodic(period), **SHORT)
    assert float(deep.posterior.model.layers[0].kernel.diag(jnp.zeros((1, 1)))[0]) < 0.1
    summed = deepwell.fit(X, y, depth=1, kernel=periodic(period) + periodic(1.0) * periodic(3.0), **SHORT)
    assert len(saved_and_loaded(summed, tmp_path / "s.deepwell").posterior.model.layers[0].kernel.kernels) == 2


@final
class Laplace(Likelihood):
    """p(y | f) = exp(-|y - f| / s) / 2 s, as a mixture of normals whose variance is 2 s^2 w, w ~ Exponential(1)."""

    log_noise_variance: Annotated[Float[Array, " p"], noise_prior]
    response = "numbers"

    def _variances(self):
        weights = np.polynomial.laguerre.laggauss(20)
        return 2.0 * jnp.exp(self.log_noise_variance)[:, None] * jnp.asarray(weights[0], float), jnp.log(weights[1])

    def num_latents(self, num_targets):
        return num_targets

    def marginal(self, mean, variance):
        noise, log_weights = self._variances()
        return Normals(mean, variance, noise[None], jnp.asarray(log_weights, mean.dtype)[None, None])

    def predict_log_density(self, mean, variance, y):
        noise, log_weights = self._variances()
        spread = variance[..., None] + noise
        squares = (y - mean)[..., None] ** 2 / spread
        return jnp.sum(jax.nn.logsumexp(log_weights - 0.5 * (squares + jnp.log(2.0 * jnp.pi * spread)), -1), -1)

    def predict_mean_and_var(self, mean, variance):
        return mean, variance + 2.0 * jnp.exp(self.log_noise_variance)

    def log_prob(self, f, y):
        scale = jnp.exp(0.5 * self.log_noise_variance)
        return jnp.sum(-jnp.abs(y - f) / scale - jnp.log(2.0 * scale), -1)

    def variational_expectations(self, mean, variance, y):
        nodes, weights = np.polynomial.hermite_e.hermegauss(32)
        at = mean[None] + jnp.sqrt(variance)[None] * jnp.asarray(nodes, mean.dtype)[:, None, None]
        return jnp.asarray(weights / weights.sum(), mean.dtype) @ jax.vmap(lambda f: self.log_prob(f, y))(at)


def test_an_own_likelihood(tmp_path):
    """Its noise has heavier tails than the normal one: an outlier moves the function less."""
    X, y = wave(seed=2)
    y[5] += 8.0
    longer = {**SHORT, "burn_in": 1_000}
    laplace = deepwell.fit(X, y, likelihood=Laplace(jnp.full((1,), np.log(0.01), float)), **longer)
    saved_and_loaded(laplace, tmp_path / "m.deepwell")
    gaussian = deepwell.fit(X, y, **longer)
    assert error(laplace) < 0.7 * error(gaussian)
    density = laplace.predict_dist(np.zeros((1, 1)))
    grid = np.linspace(-20.0, 20.0, 4001)
    total = np.sum(np.exp([density.log_prob(np.asarray([value]))[0] for value in grid])) * (grid[1] - grid[0])
    assert total == pytest.approx(1.0, abs=1e-3)


@final
class Cosines(Layer):
    """f = m(x) + A v with A_j = sqrt(variance) cos(j pi (x + L) / 2 L) / j: waves on [-L, L], of falling size."""

    log_variance: Annotated[Float[Array, ""], variance_prior]
    numbers: Annotated[Float[Array, " m"], CONSTANT]
    mean: Mean
    width: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True, default=1e-5)

    @property
    def num_features(self):
        return len(self.numbers)

    def gram(self):
        return None

    def prepare(self, factor):
        return None

    def project(self, prepared, X):
        waves = jnp.cos(self.numbers * jnp.pi * (X + 3.0) / 6.0) / self.numbers
        variance = jnp.broadcast_to(self.jitter * jnp.exp(self.log_variance), X.shape[:1])
        return Projection(jnp.exp(0.5 * self.log_variance) * waves, variance, self.mean(X))


def noise():
    return Gaussian(jnp.full((1,), np.log(0.01), float))


def test_an_own_layer(tmp_path):
    layer = Cosines(jnp.zeros((), float), jnp.arange(1.0, 16.0, dtype=float), Zero(1), 1)
    model = deepwell.fit(*wave(), model=DeepGP((layer,), noise()), **{**SHORT, "num_inducing": None})
    saved_and_loaded(model, tmp_path / "m.deepwell")
    assert model.settings.depth == 1
    assert model.settings.num_inducing == (15,)
    assert error(model) < 0.2


def test_a_model_that_does_not_fit_the_table_is_refused():
    layer = Cosines(jnp.zeros((), float), jnp.arange(1.0, 16.0, dtype=float), Zero(2), 2)
    model, settings = DeepGP((layer,), noise()), {**SHORT, "num_inducing": None}
    with pytest.raises(deepwell.InputError, match="the last layer of model= has 2 outputs, but its likelihood needs 1"):
        deepwell.fit(*wave(), model=model, **settings)
    with pytest.raises(deepwell.InputError, match="depth=3 cannot be had together with model="):
        deepwell.fit(*wave(), model=model, depth=3, **settings)
    with pytest.raises(deepwell.InputError, match="must be a DeepGP, or a function"):
        deepwell.fit(*wave(), model=lambda X: None, **settings)


def test_an_array_without_a_prior_is_refused():
    class Bare(Kernel):
        period: Float[Array, ""]

        def __call__(self, X, Z):
            return jnp.cos((X - Z.T) / self.period)

    with pytest.raises(deepwell.InputError, match=r"Bare\.period is an array without a prior"):
        deepwell.fit(*wave(), depth=1, kernel=Bare(jnp.ones((), float)), **SHORT)


def test_random_features_and_inducing_points_in_one_model(tmp_path):
    """``model=`` may be a function of the standardised inputs."""

    def make(X):
        kernel = SquaredExponential(jnp.zeros((1,), float), jnp.asarray(np.log(0.01), float))
        hidden = random_feature_layer(np.random.default_rng(0), kernel, Identity(), 1, 20, 1e-5)
        last = Cosines(jnp.zeros((), float), jnp.arange(1.0, 16.0, dtype=float), Zero(1), 1)
        return DeepGP((hidden, last), noise())

    for inference in ("sghmc", "sghmc-bayes", "dsvi"):
        settings = {**SHORT, "num_inducing": None, "inference": inference, "burn_in": 600}
        model = deepwell.fit(*wave(), model=make, **settings)
        saved_and_loaded(model, tmp_path / f"{inference}.deepwell")
        assert error(model) < 0.5


class Walk(NamedTuple):
    """Chains of random-walk Metropolis."""

    v: Array
    height: Array
    samples: Array


def metropolis(num_proposals, width):
    """v moves by random-walk Metropolis at fixed theta: a method in one function."""

    def start(config, key, problem, rows):
        v = problem.first_positions(config.num_chains)
        room = jnp.zeros((config.num_chains, config.num_samples, v.shape[-1]), v.dtype)
        return Walk(v, jnp.full((config.num_chains,), -jnp.inf, v.dtype), room)

    def advance(config, rates, key, problem, rows, state, first, last):
        joint, theta = log_joint(config, problem, rows), Packing.pack(problem.theta)
        prepared = joint.prepare(theta)
        density = joint.density(theta, prepared, joint.batch(key, theta, prepared))
        count = rows.num_data.astype(state.v.dtype)

        def propose(i, state):
            step_key, accept_key = jax.random.split(iteration_key(key, i))
            moved = state.v + width * standard_normal(step_key, state.v.shape, state.v.dtype)
            height = count * jax.vmap(lambda v: density(key, v)[0])(moved)
            lower = jnp.log(jax.random.uniform(accept_key, height.shape, height.dtype)) < height - state.height
            v, height = jnp.where(lower[:, None], moved, state.v), jnp.where(lower, height, state.height)
            return Walk(v, height, state.samples.at[:, i // num_proposals].set(v))

        state = jax.lax.fori_loop(first * num_proposals, last * num_proposals, propose, state)
        return state, jnp.mean(state.height) / count

    def finish(config, key, problem, state):
        none = jnp.zeros((), jnp.int32)
        posterior = shared_theta(key, problem.initial, state.samples)
        return posterior, NumericalIssues(none, none, none, jnp.zeros((0,), jnp.int32))

    return Method(
        "metropolis", start, lambda config: (Phase("walking", config.num_samples, advance),), finish, deep_gp_problem
    )


@pytest.fixture
def registered():
    yield register(metropolis(200, 0.02))
    unregister("metropolis")


def test_an_own_method(registered, tmp_path):
    """At depth 1 with Z = X the posterior mean of f is that of exact GP regression."""
    X, y = wave(8)
    settings = {"depth": 1, "num_inducing": 8, "kernel": "se", "noise_variance": 0.1, "fixed": ["*"], "num_chains": 4}
    model = deepwell.fit(X, y, inference="metropolis", num_samples=400, **settings)
    assert isinstance(saved_and_loaded(model, tmp_path / "m.deepwell").posterior, SharedTheta)
    x, t = model.x_scaling.standardise(X), model.y_scaling.standardise(y[:, None])
    gram = np.exp(-0.5 * (x - x.T) ** 2)
    exact = gram @ np.linalg.solve(gram + 0.1 * np.eye(8), t)
    draws = model.function_values(X)[400 * np.arange(4)[:, None] + np.arange(200, 400)].reshape(-1, 8)
    np.testing.assert_allclose(np.mean(draws, 0), exact[:, 0], atol=0.15)
    with pytest.raises(deepwell.InputError, match="there is an inference method 'metropolis' already"):
        register(registered)


def test_own_likelihoods_in_the_estimators():
    X, y = wave()
    settings = {"preset": "quick", "burn_in": 50, "n_samples": 5, "n_inducing": 10, "random_state": 0}
    laplace = Laplace(jnp.full((1,), np.log(0.01), float))
    estimator = deepwell.DeepGPRegressor(likelihood=laplace, **settings).fit(X, y)
    assert isinstance(estimator.model_.posterior.model.likelihood, Laplace)
    with pytest.raises(deepwell.InputError, match="Laplace is a likelihood of numbers, not of classes"):
        deepwell.DeepGPClassifier(likelihood=laplace, **settings).fit(X, (y > 0).astype(int))


def test_a_new_rate_compiles_nothing():
    from test_compilation import compilations

    settings = {**SHORT, "burn_in": 20, "num_samples": 4, "spacing": 5}
    deepwell.fit(*wave(), **settings)
    with compilations() as again:
        deepwell.fit(*wave(), step_size=0.011, friction=0.07, learning_rate=0.013, sampling_friction=0.3, **settings)
    assert len(again) == 0


def test_a_schedule_is_followed():
    """A step size that falls to nothing at once leaves v where it is; one that does not moves it."""
    X, y = wave()
    settings = {**SHORT, "depth": 1, "burn_in": 200, "fixed": ["*"]}
    still, moving = (deepwell.fit(X, y, step_size=rate, **settings) for rate in ((1e-9, 1e-9), (0.03, 1e-9)))
    sizes = [float(np.max(np.abs(model.posterior.samples[0]))) for model in (still, moving)]
    assert sizes[0] < 1e-3 < 0.1 < sizes[1]
