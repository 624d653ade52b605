# %% [markdown]
# # Reading the diagnostics
#
# Three questions to ask of every fit: did it converge, can I trust the error bars, what did it learn?

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import deepwell
from deepwell.assess.report import HeldOut, write_report
from deepwell.doors import plots

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (300, 2)), columns=["side", "height"])
y = pd.Series(np.sign(X["side"]) * X["height"] + 0.1 * rng.standard_normal(300), name="load")
train, test = slice(0, 200), slice(200, 300)

# %% [markdown]
# ## Watch it
# A callback is called with an event after every chunk of iterations; `CsvLog("trace.csv")` would write them to a file,
# `verbose=True` shows a bar. Here they are kept in a list.

# %%
events = []
model = deepwell.fit(X[train], y[train], preset="quick", num_chains=2, callbacks=[events.append])
print(events[-1])

# %% [markdown]
# ## Did it converge?
# R-hat compares chains with each other and each with itself, on function values at the rows given: the inducing
# outputs themselves may differ between chains that agree on the function. Near 1 is good. With the short preset of this
# tutorial the verdict may well be "run longer", and it is right.

# %%
verdict = model.diagnose(X[test])
print(verdict)

# %% [markdown]
# ## Can I trust the error bars?
# On rows the fit has not seen. The first picture is flat if the predictions are honest, the second follows the
# diagonal.

# %%
calibration = model.calibration(X[test], y[test])
print(calibration)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
plots.pit_histogram(left, calibration)
plots.coverage_curve(right, calibration)

# %% [markdown]
# Where they are not honest, rows kept out of the fit can correct them: conformal intervals hold y at least as often as
# they say, whatever the model. (`fit(..., calibration=0.2)` keeps rows out by itself.)

# %%
adjusted = model.calibrated(X[test][:50], y[test][:50])
lower, upper = adjusted.predict_interval(X[test][50:], 0.9, conformal=True)
print(f"mean width of 90 % intervals after adjustment: {np.mean(upper - lower):.2f}")

# %% [markdown]
# ## What did it learn?
# How steeply the prediction changes with each input, and the prediction along one of them.

# %%
relevance = model.relevance(X[test])
print(pd.Series(relevance.mean, X.columns).round(2))
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
plots.slice_bands(axes, model.slice_along(X, "height"))

# %% [markdown]
# ## All of it on one page

# %%
write_report(model, "report.html", HeldOut(X[test], y[test].to_numpy()))

# %% [markdown]
# Next: [how deep?](3_choosing_depth.py)
