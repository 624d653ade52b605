# %% [markdown]
# # A first fit
#
# A deep Gaussian process takes a table and gives back, for every new row, not a number but a distribution. This
# tutorial fits one, predicts, scores the prediction and saves the model.
#
# `preset="quick"` keeps it to seconds. Leave it out for real work.

# %%
import numpy as np
import pandas as pd

import deepwell

# %% [markdown]
# ## The data
# 300 rows, two inputs. Where `side` changes sign, the slope in `height` flips: a jump that a single Gaussian process
# smooths over.

# %%
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (300, 2)), columns=["side", "height"])
y = pd.Series(np.sign(X["side"]) * X["height"] + 0.1 * rng.standard_normal(300), name="load")
train, test = slice(0, 200), slice(200, 300)

# %% [markdown]
# ## Fit
# `fit` standardises the columns itself: give it your own units. The same seed gives the same model.

# %%
model = deepwell.fit(X[train], y[train], preset="quick", seed=0)

# %% [markdown]
# ## Predict
# `predict` gives the mean, and the standard deviation if asked. `predict_dist` gives the whole distribution, a mixture
# over posterior samples: density, quantiles, intervals, draws.

# %%
mean, std = model.predict(X[test], return_std=True)
prediction = model.predict_dist(X[test])
lower, upper = prediction.interval(0.9)
print(pd.DataFrame({"load": y[test], "mean": mean, "std": std, "5 %": lower, "95 %": upper}).head().round(2))

# %% [markdown]
# ## How good?
# The error of the mean beside the spread of y, and the share of rows inside their 90 % interval.

# %%
error = float(np.sqrt(np.mean((mean - y[test]) ** 2)))
inside = float(np.mean((lower <= y[test]) & (y[test] <= upper)))
print(f"error {error:.2f}, standard deviation of y {y[test].std():.2f}, inside 90 % intervals: {inside:.0%}")

# %% [markdown]
# ## Keep it
# One file, plain numbers and metadata, no pickle. The loaded model predicts the same bits.

# %%
model.save("load.deepwell")
loaded = deepwell.load("load.deepwell")
print(np.array_equal(loaded.predict(X[test]), mean))

# %% [markdown]
# Next: [are the error bars to be trusted, and did the sampler converge?](2_reading_the_diagnostics.py)
