# %% [markdown]
# # Choosing depth
#
# Depth 1 is a Gaussian process. More layers let it bend its own input, which helps with jumps and with regions of
# different smoothness, and costs time. Does it help on your table? `compare_depths` fits each depth to the same rows
# and compares the log density of rows kept out.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import deepwell
from deepwell.doors import plots

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (250, 2)), columns=["side", "height"])
noise = 0.1 * rng.standard_normal(250)

# %% [markdown]
# ## A jump: depth helps
# The comparison is made row by row, so that a row that is hard for every depth does not blur it. `±` is one standard
# error of the difference. `enough` is the shallowest depth that is not clearly worse than the best.

# %%
jump = deepwell.compare_depths(X, np.sign(X["side"]) + noise, depths=(1, 2), preset="quick", seed=1)
print(jump)
print(pd.DataFrame(jump.rows()).T.round(3))

# %% [markdown]
# ## A smooth wave: it does not

# %%
wave = deepwell.compare_depths(X, np.sin(X["side"]) + X["height"] + noise, depths=(1, 2), preset="quick", seed=1)
print(wave)

# %% [markdown]
# ## In pictures
# Dots below zero are worse than the best; bars are two standard errors.

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axes, (name, found) in zip(panels, {"jump": jump, "wave": wave}.items(), strict=True):
    plots.depths(axes, found)
    axes.set_title(name)

# %% [markdown]
# The standard error speaks of the rows alone: a fit as short as these also varies with its seed, by a tenth or so a
# row. Before you believe a small difference, fit with the preset you mean to use, and with another seed.
#
# On the command line: `deepwell depths table.csv --target y --picture depths.png`. With `by="loo"` no rows are kept
# out (leave-one-out from the samples, by ArviZ); it is a little kinder to deep models, because the hyperparameters have
# seen every row.
#
# Next: [classes](4_classification.py)
