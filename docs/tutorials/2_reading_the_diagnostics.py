# %% [markdown]
# # Reading the diagnostics
#
# Ask three questions of every fit: did it converge, can I trust the error bars, and what did it learn?

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
# A callback is called with an event after every chunk of iterations. Here a list keeps the events.
# `CsvLog("trace.csv")` would write them to a file, and `verbose=True` shows a bar.

# %%
events = []
model = deepwell.fit(X[train], y[train], preset="quick", num_chains=2, callbacks=[events.append])
print(events[-1])

# %% [markdown]
# ## Did it converge?
# R-hat compares the chains with each other, and each chain with itself. Near 1 is good. It uses function values at
# the given rows, because the inducing outputs may differ between chains that agree on the function. With the short
# preset of this tutorial the verdict may be "run longer", and then it is right.

# %%
verdict = model.diagnose(X[test])
print(verdict)

# %% [markdown]
# ## Can I trust the error bars?
# Check them on rows that the fit has not seen. If they are honest, the first picture is flat and the second follows the
# diagonal.

# %%
calibration = model.calibration(X[test], y[test])
print(calibration)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
plots.pit_histogram(left, calibration)
plots.coverage_curve(right, calibration)

# %% [markdown]
# If they are not honest, rows kept out of the fit can correct them. Conformal intervals contain y at least as often as
# they claim, whatever the model. (`fit(..., calibration=0.2)` keeps out rows by itself.)

# %%
adjusted = model.calibrated(X[test][:50], y[test][:50])
lower, upper = adjusted.predict_interval(X[test][50:], 0.9, conformal=True)
print(f"mean width of 90 % intervals after adjustment: {np.mean(upper - lower):.2f}")

# %% [markdown]
# ## What did it learn?
# `relevance` is how steeply the prediction changes with each input. `slice_along` is the prediction along one of them.

# %%
relevance = model.relevance(X[test])
print(pd.Series(relevance.mean, X.columns).round(2))
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
plots.slice_bands(axes, model.slice_along(X, "height"))

# %% [markdown]
# ## Everything on one page

# %%
write_report(model, "report.html", HeldOut(X[test], y[test].to_numpy()))

# %% [markdown]
# Next: [how deep?](3_choosing_depth.py)
