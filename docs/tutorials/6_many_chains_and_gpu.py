# %% [markdown]
# # Many chains, and a GPU
#
# One chain can stay in one place and still look converged. Several chains with different starts show whether they
# agree. They run as one program, so on a GPU eight chains take far less than eight times as long as one.

# %%
import jax
import numpy as np
import pandas as pd

import deepwell

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (300, 2)), columns=["side", "height"])
y = pd.Series(np.sign(X["side"]) * X["height"] + 0.1 * rng.standard_normal(300), name="load")
train, test = slice(0, 200), slice(200, 300)

# %% [markdown]
# ## Where does it run?
# JAX uses a GPU if it finds one. Run `pip install 'deepwell[gpu]'`; the code stays the same. On the command line,
# `--device cpu` or `--device gpu` chooses.

# %%
device = jax.devices()[0]
print(device.platform, device.device_kind)

# %% [markdown]
# To choose in Python, put the fit in a context:

# %%
with jax.default_device(jax.devices("cpu")[0]):
    model = deepwell.fit(X[train], y[train], preset="quick", num_chains=4)

# %% [markdown]
# ## Four chains, one answer?
# The chains share hyperparameters, so they sample one posterior and R-hat has a meaning. Predictions mix the samples of
# all chains.

# %%
chains, draws = model.posterior.draws
print(f"{chains} chains of {draws} draws")
verdict = model.diagnose(X[test])
print(verdict)

# %% [markdown]
# ## What each chain says
# These are the means of every chain at three rows. If they differ by more than their spread, run longer: use a larger
# `burn_in` or more `spacing` between draws.

# %%
values = model.function_values(X[test][:3])[:, :, 0].reshape(chains, draws, 3)
print(pd.DataFrame(values.mean(1), index=[f"chain {i + 1}" for i in range(chains)]).round(2))

# %% [markdown]
# On a GPU, also consider:
#
# - a larger `batch_size`, which costs little there;
# - `num_chains=8` or more;
# - `deepwell evaluate`, which fits all splits as one program;
# - `--deterministic`, if you need the same bits every time.
