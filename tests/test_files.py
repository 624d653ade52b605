"""Model files: what is in them is read back, and malformed files are rejected."""

import dataclasses
import importlib
import json
import subprocess
import sys
import time
import types
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import joblib
import numpy as np
import pytest
from fuzz_files import SETTINGS, mutated, originals, parts, sealed, study, whole

import deepwell
from deepwell import DeepGPRegressor, DeepwellFileError, InputError
from deepwell.fits.settings import CLASSES, COUNTS, NUMBERS
from deepwell.model import kernels, likelihoods
from deepwell.store import modules
from deepwell.store.model_file import read_model, write_model
from deepwell.store.tensor_file import KEY

ALLOWED = {"refused", "a model", "a state", "another fit's"}


def check(count, tmp_path):
    counts = study(count, count, tmp_path)
    outcomes = {key[2] for key in counts if isinstance(key, tuple)}
    print(dict(counts))
    assert outcomes <= ALLOWED
    assert sum(n for key, n in counts.items() if isinstance(key, tuple)) == count
    assert counts["slowest, ms"] < 20_000
    for kind in ("truncated", "bits", "sizes", "deep"):
        assert counts["model", kind, "a model"] == 0
    assert sum(n for key, n in counts.items() if key[2:] == ("a model",)) > 0  # harmless, with a digest that fits


def test_300_mutated_files(tmp_path):
    check(300, tmp_path)


@pytest.mark.slow
def test_10000_mutated_files(tmp_path):
    check(10_000, tmp_path)


def test_an_untouched_file_is_read(tmp_path):
    for content in originals(tmp_path):
        header, data = parts(content)
        (tmp_path / "same.deepwell").write_bytes(whole(header, data))
        assert deepwell.load(tmp_path / "same.deepwell").feature_names == ("x0", "x1")
    damaged = mutated(np.random.default_rng(0), content, "truncated")
    (tmp_path / "same.deepwell").write_bytes(damaged)
    with pytest.raises(DeepwellFileError):
        deepwell.load(tmp_path / "same.deepwell")


def set_part(description, path, value):
    *way, last = path
    for step in way:
        description = description[step]
    description[last] = value


def edited(path, part, value):
    """Replace a part of a file's description; the digest fits."""
    header, data = parts(path.read_bytes())
    description = json.loads(header["__metadata__"][KEY])
    set_part(description, part, value)
    header["__metadata__"][KEY] = json.dumps(description)
    path.write_bytes(sealed(header, data))


LENGTHSCALES = {"tensor": "posterior.model.layers.0.kernel.log_lengthscales"}
HOSTILE = {
    "absurd depth": (["settings", "depth"], 10**18),
    "endless kernel": (["settings", "kernel"], "se+" * 20_000),
    "absurd width": (["posterior", "model", "layers", 1, "mean", "width"], 10**9),
    "one array for everything": (["posterior", "samples"], [LENGTHSCALES] * 2),
    "endless jitter": (["jitter_retries"], 10**9),
    "no samples": (["posterior", "samples"], []),
    "another class": (["posterior", "class"], "Layer"),
    "an unknown class": (["posterior", "class"], "os.system"),
    "an imported function": (["posterior", "class"], "os:system"),
    "an imported class of another kind": (["posterior", "class"], "collections:OrderedDict"),
    "a class of deepwell's by import path": (
        ["posterior", "class"],
        "deepwell.inference.deep_gp_posteriors:SharedTheta",
    ),
    "an abstract class": (["posterior", "class"], "deepwell.inference.posterior:Posterior"),
    "an import path that is none": (["posterior", "class"], "os:system()"),
    "a missing field": (["posterior", "model"], {"class": "DeepGP", "layers": []}),
    "a static field that holds an array": (
        ["posterior", "model", "layers", 0, "jitter"],
        {"tensor": "x_scaling.scale"},
    ),
    "a truth value in a field": (["posterior", "model", "layers", 0, "width"], True),
    "another likelihood in the settings": (["settings", "likelihood"], "student-t"),
    "negative jitter": (["posterior", "model", "layers", 0, "jitter"], -1.0),
    "names that are none": (["feature_names"], [1, 2]),
    "more names than columns": (["feature_names"], ["a", "b", "c"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_descriptions_with_a_digest_that_fits_are_refused(name, tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 2))
    path = tmp_path / "m.deepwell"
    deepwell.fit(X, X[:, 0], width=2, **SETTINGS).save(path)
    edited(path, *HOSTILE[name])
    started = time.perf_counter()
    with pytest.raises(DeepwellFileError, match="is damaged"):
        deepwell.load(path)
    assert time.perf_counter() - started < 5


GOLDEN = sorted((Path(__file__).parent / "files").glob("*.deepwell"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_every_format_are_read_and_predict_what_they_did(path):
    """Within a thousandth of the predictive standard deviation, on whatever machine this is."""
    expected = json.loads(path.with_suffix(".json").read_text())
    model, X = deepwell.load(path), np.column_stack([expected["X"]["a"], expected["X"]["b"]])
    if model.classes is not None:
        assert list(model.classes) == expected["classes"]
        np.testing.assert_allclose(model.predict_proba(X), expected["probabilities"], atol=1e-3)
        return
    mean, std = model.predict(X, return_std=True)
    assert np.max(np.abs(mean - expected["mean"]) / std) < 1e-3
    np.testing.assert_allclose(std, expected["std"], rtol=1e-3)


def test_estimators_save_the_same_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 2))
    estimator = DeepGPRegressor(preset="quick", burn_in=20, n_inducing=4, random_state=0).fit(X, X[:, 0])
    estimator.save(tmp_path / "e.deepwell")
    np.testing.assert_array_equal(deepwell.load(tmp_path / "e.deepwell").predict(X), estimator.predict(X))
    joblib.dump(estimator, tmp_path / "e.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "e.joblib").predict(X), estimator.predict(X))


def test_there_is_a_golden_file_of_every_format_and_kind():
    kinds = {(deepwell.load(path).posterior.__class__.__name__, path.stem.split("-")[0]) for path in GOLDEN}
    assert ("SharedTheta", "format1") in kinds
    assert {kind for kind, form in kinds if form == "format2"} == {"SharedTheta", "OwnTheta", "Variational", "Networks"}
    likelihoods = {deepwell.load(path).settings.likelihood for path in GOLDEN}
    assert likelihoods == {*NUMBERS, *COUNTS, *CLASSES}
    assert not any(deepwell.load(path).settings.control_variates for path in GOLDEN)  # all older than these


OWN_KERNEL = """
import equinox as eqx
import jax
import jax.numpy as jnp
from deepwell.model.kernels import Kernel

class Wobbly(Kernel):
    smooth: Kernel
    log_height: jax.Array
    rate: float = eqx.field(static=True)
    label: str = eqx.field(static=True)
    even: bool = eqx.field(static=True)
    columns: tuple = eqx.field(static=True)

    def __init__(self, smooth, height):  # not its fields: it cannot be called with these
        self.smooth, self.log_height = smooth, jnp.log(jnp.asarray(height))
        self.rate, self.label, self.even, self.columns = -3.0, "wobbly", True, (0, (1,), None)

    def waves(self, X):
        angles = self.rate * X[:, self.columns[0]]
        return jnp.exp(0.5 * self.log_height) * (jnp.cos(angles) if self.even else jnp.sin(angles))

    def __call__(self, X, Z):
        return self.smooth(X, Z) + self.waves(X)[:, None] * self.waves(Z)

    def diag(self, X):
        return self.smooth.diag(X) + self.waves(X) ** 2
"""


@pytest.fixture
def own_kernels(tmp_path, monkeypatch):
    """A module of somebody else's that holds a kernel."""
    (tmp_path / "own_kernels.py").write_text(OWN_KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_kernels")
    sys.modules.pop("own_kernels", None)


@pytest.fixture(scope="module")
def plain_model():
    X = np.random.default_rng(0).standard_normal((12, 2))
    return deepwell.fit(X, X[:, 0], width=2, **SETTINGS)


def with_kernels(model, change):
    """The model with the kernel of each layer changed."""
    deep_gp = model.posterior.model
    layers = tuple(dataclasses.replace(layer, kernel=change(layer.kernel)) for layer in deep_gp.layers)
    posterior = dataclasses.replace(model.posterior, model=dataclasses.replace(deep_gp, layers=layers))
    return dataclasses.replace(model, posterior=posterior)


def test_a_kernel_from_outside_is_saved_by_import_path(plain_model, own_kernels, tmp_path):
    X = np.random.default_rng(1).standard_normal((5, 2))
    model = with_kernels(plain_model, lambda kernel: own_kernels.Wobbly(kernel, 0.5))
    assert np.max(np.abs(model.predict(X) - plain_model.predict(X))) > 1e-3  # the kernel matters
    path = tmp_path / "m.deepwell"
    model.save(path)
    loaded = deepwell.load(path)
    np.testing.assert_array_equal(loaded.predict(X, return_std=True), model.predict(X, return_std=True))
    assert eqx.tree_equal(loaded.posterior, model.posterior)  # static fields too
    edited(path, ["posterior", "model", "layers", 0, "kernel", "amplitude"], 1.0)
    with pytest.raises(DeepwellFileError, match=r"is damaged: .*has the fields smooth, log_height, rate"):
        deepwell.load(path)


def test_a_file_never_causes_an_import(plain_model, own_kernels, tmp_path):
    path = tmp_path / "m.deepwell"
    model = with_kernels(plain_model, lambda kernel: own_kernels.Wobbly(kernel, 0.5))
    model.save(path)
    del sys.modules["own_kernels"]
    said = r"m\.deepwell needs own_kernels\.Wobbly: import own_kernels before loading, or pass classes=\[Wobbly\]"
    with pytest.raises(DeepwellFileError, match=said):
        deepwell.load(path)
    assert "own_kernels" not in sys.modules
    X = np.random.default_rng(1).standard_normal((5, 2))
    loaded = deepwell.load(path, classes=[own_kernels.Wobbly])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    moved = type("Wobbly", (own_kernels.Wobbly,), {"__module__": "elsewhere"})  # given under another path
    np.testing.assert_array_equal(deepwell.load(path, classes=[moved]).predict(X), model.predict(X))
    with pytest.raises(InputError, match="is not a class that derives from one of Kernel, Mean, Likelihood, Layer"):
        deepwell.load(path, classes=[dict])
    code = "import sys, deepwell\ntry: deepwell.load(sys.argv[1])\nexcept deepwell.DeepwellFileError as e: print(e)"
    command = [sys.executable, "-c", code, str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "needs own_kernels.Wobbly" in output


def test_a_class_of_a_script_is_asked_for_by_name(plain_model, tmp_path):
    class Scaled(kernels.Kernel):
        inner: kernels.Kernel

        def __call__(self, X, Z):
            return 2.0 * self.inner(X, Z)

        def diag(self, X):
            return 2.0 * self.inner.diag(X)

    path = tmp_path / "m.deepwell"
    with_kernels(plain_model, Scaled).save(path)
    with pytest.raises(DeepwellFileError, match=r"Scaled: pass classes=\[Scaled\]$"):
        deepwell.load(path)
    assert isinstance(deepwell.load(path, classes=[Scaled]).posterior.model.layers[0].kernel, Scaled)


def test_names_that_a_module_makes_on_demand_are_not_asked_for(plain_model, tmp_path, monkeypatch):
    asked = []
    lazy = types.ModuleType("lazy_kernels")
    lazy.__getattr__ = asked.append
    monkeypatch.setitem(sys.modules, "lazy_kernels", lazy)
    path = tmp_path / "m.deepwell"
    plain_model.save(path)
    edited(path, ["posterior", "model", "layers", 0, "kernel", "class"], "lazy_kernels:Wobbly")
    with pytest.raises(DeepwellFileError, match=r"needs lazy_kernels\.Wobbly"):
        deepwell.load(path)
    assert asked == []


@pytest.mark.parametrize(
    "value", [len, [1.0], {"a": 1}, np.array(["text"]), np.ones(2, bool), jnp.ones(2, jnp.bfloat16)]
)
def test_what_a_file_cannot_hold_is_named_when_saving(plain_model, tmp_path, value):
    class Odd(kernels.Kernel):
        inner: kernels.Kernel
        extra: object

        def __call__(self, X, Z):
            return self.inner(X, Z)

        def diag(self, X):
            return self.inner.diag(X)

    model = with_kernels(plain_model, lambda kernel: Odd(kernel, value))
    said = rf"layers\.0\.kernel\.extra cannot be saved: it is a {type(value).__name__}"
    with pytest.raises(DeepwellFileError, match=said):
        model.save(tmp_path / "m.deepwell")
    assert not list(tmp_path.iterdir())


class Shifted(likelihoods.Likelihood):
    """y = f + shift + Gaussian noise."""

    noisy: likelihoods.Gaussian
    shift: float = eqx.field(static=True)

    def num_latents(self, num_targets):
        return self.noisy.num_latents(num_targets)

    def log_prob(self, f, y):
        return self.noisy.log_prob(f + self.shift, y)

    def predict_mean_and_var(self, mean, variance):
        return self.noisy.predict_mean_and_var(mean + self.shift, variance)

    def predict_log_density(self, mean, variance, y):
        return self.noisy.predict_log_density(mean + self.shift, variance, y)

    def variational_expectations(self, mean, variance, y):
        return self.noisy.variational_expectations(mean + self.shift, variance, y)

    def marginal(self, mean, variance):
        return self.noisy.marginal(mean + self.shift, variance)


def test_settings_that_are_objects_are_read_back(plain_model, own_kernels, tmp_path):
    likelihood = Shifted(plain_model.posterior.model.likelihood, -0.25)
    deep_gp = dataclasses.replace(plain_model.posterior.model, likelihood=likelihood)
    fields = {f.name: getattr(plain_model, f.name) for f in dataclasses.fields(plain_model)}
    fields["posterior"] = dataclasses.replace(plain_model.posterior, model=deep_gp)
    kernel = own_kernels.Wobbly(kernels.make_kernel("se", 2, 1.0, 1.0), 0.5)
    settings = dataclasses.replace(plain_model.settings, kernel=(kernel, "se"), likelihood=likelihood)
    fields["settings"] = dataclasses.asdict(plain_model.settings) | {"kernel": (kernel, "se"), "likelihood": likelihood}
    write_model(tmp_path / "m.deepwell", fields)
    read = read_model(tmp_path / "m.deepwell")
    assert type(settings)(**read["settings"]) == settings
    assert eqx.tree_equal(read["posterior"], fields["posterior"])
    fields["settings"]["likelihood"] = "gaussian"  # a name is that of a built-in likelihood
    write_model(tmp_path / "m.deepwell", fields)
    with pytest.raises(DeepwellFileError, match="the likelihood is not the one of the settings"):
        read_model(tmp_path / "m.deepwell")


def test_fingerprints_tell_kernels_apart(own_kernels):
    smooth = kernels.make_kernel("se", 2, 1.0, 1.0)
    of_half, of_one = (modules.fingerprint((own_kernels.Wobbly(smooth, height), "se")) for height in (0.5, 1.0))
    assert json.loads(json.dumps(of_half)) == of_half != of_one
    assert modules.fingerprint((own_kernels.Wobbly(smooth, 0.5), "se")) == of_half
    assert modules.fingerprint((1, ("a", None))) == [1, ["a", None]]


def test_every_class_of_the_package_has_a_plain_name_in_files():
    """Otherwise a file would name it by import path, and break when the class moves."""
    seen = [*modules.BASES]
    for cls in seen:
        seen.extend(cls.__subclasses__())
    ours = {cls for cls in seen if cls.__module__.startswith("deepwell.") and not cls.__subclasses__()}
    assert len(ours) > 15
    assert ours <= set(modules.BUILT_IN.values())
