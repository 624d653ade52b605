# %% [markdown]
# # A first fit
#
# A deep Gaussian process predicts a distribution for every new row of a table. This tutorial fits one, predicts, scores
# the prediction and saves the model.
#
# `preset="quick"` makes it take seconds. Leave it out for real work.

# %%
import numpy as np
import pandas as pd

import deepwell

# %% [markdown]
# ## The data
# The table has 300 rows and two inputs. The slope in `height` flips where `side` changes sign. A single Gaussian
# process would smooth over this jump.

# %%
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (300, 2)), columns=["side", "height"])
y = pd.Series(np.sign(X["side"]) * X["height"] + 0.1 * rng.standard_normal(300), name="load")
train, test = slice(0, 200), slice(200, 300)

# %% [markdown]
# ## Fit
# `fit` standardises the columns itself, so give it your own units. The same seed gives the same model.

# %%
model = deepwell.fit(X[train], y[train], preset="quick", seed=0)

# %% [markdown]
# ## Predict
# `predict` returns the mean, and the standard deviation if you ask for it. `predict_dist` returns the whole
# distribution, a mixture over posterior samples: density, quantiles, intervals and draws.

# %%
mean, std = model.predict(X[test], return_std=True)
prediction = model.predict_dist(X[test])
lower, upper = prediction.interval(0.9)
print(pd.DataFrame({"load": y[test], "mean": mean, "std": std, "5 %": lower, "95 %": upper}).head().round(2))

# %% [markdown]
# ## How good?
# Compare the error of the mean with the spread of y, and count the rows inside their 90 % interval.

# %%
error = float(np.sqrt(np.mean((mean - y[test]) ** 2)))
inside = float(np.mean((lower <= y[test]) & (y[test] <= upper)))
print(f"error {error:.2f}, standard deviation of y {y[test].std():.2f}, inside 90 % intervals: {inside:.0%}")

# %% [markdown]
# ## Save it
# The model is one file of numbers and plain metadata, without pickle. The loaded model predicts the same bits.

# %%
model.save("load.deepwell")
loaded = deepwell.load("load.deepwell")
print(np.array_equal(loaded.predict(X[test]), mean))

# %% [markdown]
# Next: [did the sampler converge, and can you trust the error bars?](2_reading_the_diagnostics.py)
