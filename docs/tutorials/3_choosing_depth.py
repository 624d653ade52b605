# %% [markdown]
# # Choosing depth
#
# Depth 1 is a Gaussian process. With more layers it can bend its own input. That helps with jumps and with regions of
# different smoothness, but costs time. `compare_depths` shows whether it helps on your table: it fits each depth to the
# same rows and compares the log density of held-out rows.

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
# The comparison is made row by row, so a row that is hard for every depth does not blur it. `±` is one standard error
# of the difference. `enough` is the shallowest depth that is not clearly worse than the best.

# %%
jump = deepwell.compare_depths(X, np.sign(X["side"]) + noise, depths=(1, 2), preset="quick", seed=1)
print(jump)
print(pd.DataFrame(jump.rows()).T.round(3))

# %% [markdown]
# ## A smooth wave: depth does not help

# %%
wave = deepwell.compare_depths(X, np.sin(X["side"]) + X["height"] + noise, depths=(1, 2), preset="quick", seed=1)
print(wave)

# %% [markdown]
# ## In pictures
# Dots below zero are worse than the best. Bars are two standard errors.

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axes, (name, comparison) in zip(panels, {"jump": jump, "wave": wave}.items(), strict=True):
    plots.depths(axes, comparison)
    axes.set_title(name)

# %% [markdown]
# The standard error accounts for the rows only. A fit as short as these also varies with its seed, by about a tenth a
# row. Before you believe a small difference, fit with the preset you mean to use, and with another seed.
#
# On the command line: `deepwell depths table.csv --target y --picture depths.png`. With `by="loo"` no rows are held
# out: ArviZ computes leave-one-out from the samples. This favours deep models a little, because the hyperparameters
# have seen every row.
#
# Next: [classes](4_classification.py)
