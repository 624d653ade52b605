# %% [markdown]
# # Many chains, and a GPU
#
# One chain can sit in one place and look content. Several, started apart, show whether they agree; and they run as
# one program, so that on a GPU eight take far less than eight times as long as one.

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
# JAX takes a GPU if it sees one: `pip install 'deepwell[gpu]'`, and nothing in the code changes. On the command line
# `--device cpu` or `--device gpu` decides.

# %%
device = jax.devices()[0]
print(device.platform, device.device_kind)

# %% [markdown]
# To choose in Python, say it around the fit:

# %%
with jax.default_device(jax.devices("cpu")[0]):
    model = deepwell.fit(X[train], y[train], preset="quick", num_chains=4)

# %% [markdown]
# ## Four chains, one answer?
# The chains share hyperparameters, so they sample one posterior and R-hat means something. Predictions mix the samples
# of all of them.

# %%
chains, draws = model.posterior.draws
print(f"{chains} chains of {draws} draws")
verdict = model.diagnose(X[test])
print(verdict)

# %% [markdown]
# ## What each chain says
# The mean of every chain at three rows. Where they differ by more than their spread, run longer: a larger `burn_in`, or
# more `spacing` between draws.

# %%
values = model.function_values(X[test][:3])[:, :, 0].reshape(chains, draws, 3)
print(pd.DataFrame(values.mean(1), index=[f"chain {i + 1}" for i in range(chains)]).round(2))

# %% [markdown]
# On a GPU also think of: `batch_size` (larger ones cost little there), `num_chains=8` or more, `deepwell evaluate`,
# which fits all splits as one program, and `--deterministic` if the same bits matter.
