# %% [markdown]
# # Resuming
#
# For a long fit on a machine that may stop, give `fit` a folder. The same call then resumes where the last one ended.
# The result has the same bits as an uninterrupted fit.

# %%
import numpy as np
import pandas as pd

import deepwell

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (200, 2)), columns=["side", "height"])
y = pd.Series(np.sign(X["side"]) * X["height"] + 0.1 * rng.standard_normal(200), name="load")

# %% [markdown]
# ## An interruption
# Ctrl-C and SIGTERM end a fit after its current chunk, with `deepwell.Interrupted`. Here a callback simulates an
# accident by raising in the middle. The exception ends the call, and the checkpoint stays.


# %%
class PowerCut(Exception):
    """The accident."""


def power_cut(event: deepwell.Event) -> None:
    """Raise after 1,000 iterations."""
    if event.done >= 1_000:
        raise PowerCut


log = deepwell.CsvLog("trace.csv", checkpoint="load.run")
try:
    deepwell.fit(X, y, preset="quick", checkpoint="load.run", callbacks=[power_cut, log])
except PowerCut:
    print("interrupted; logged so far:", pd.read_csv("trace.csv")["done"].tolist())

# %% [markdown]
# ## The same call again
# At most the chunk that was being computed is computed again. The log has the folder too, so it continues the same
# file.

# %%
done = []
log = deepwell.CsvLog("trace.csv", checkpoint="load.run")
resumed = deepwell.fit(X, y, preset="quick", checkpoint="load.run", callbacks=[lambda e: done.append(e.done), log])
print("resumed, first chunk done:", done[0])

# %% [markdown]
# ## Nothing was lost

# %%
uninterrupted = deepwell.fit(X, y, preset="quick")
same = np.array_equal(resumed.predict(X), uninterrupted.predict(X))
print("same bits as an uninterrupted fit:", same)
trace = pd.read_csv("trace.csv")
print(trace.tail(3).round(3))

# %% [markdown]
# [Robustness](../robustness.md) lists what else can go wrong, and what happens then.
#
# Next: [many chains, and a GPU](6_many_chains_and_gpu.py)
