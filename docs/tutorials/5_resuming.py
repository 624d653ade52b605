# %% [markdown]
# # Resuming
#
# A long fit on a machine that may stop: give `fit` a folder, and the same call goes on where the last one ended, to
# the same bits as if nothing had happened.

# %%
import numpy as np
import pandas as pd

import deepwell

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-2, 2, (200, 2)), columns=["side", "height"])
y = pd.Series(np.sign(X["side"]) * X["height"] + 0.1 * rng.standard_normal(200), name="load")

# %% [markdown]
# ## An interruption
# Ctrl-C and SIGTERM end a fit after its current chunk, with `deepwell.Interrupted`. Here a callback plays the
# accident: it raises in the middle. The exception comes through, and the checkpoint stays.


# %%
class PowerCut(Exception):
    """The accident."""


def power_cut(event: deepwell.Event) -> None:
    """Happens after 1,000 iterations."""
    if event.done >= 1_000:
        raise PowerCut


log = deepwell.CsvLog("trace.csv", checkpoint="load.run")
try:
    deepwell.fit(X, y, preset="quick", checkpoint="load.run", callbacks=[power_cut, log])
except PowerCut:
    print("interrupted; logged so far:", pd.read_csv("trace.csv")["done"].tolist())

# %% [markdown]
# ## The same call again
# At most the chunk that was under way is computed again. The log knows the folder too, and goes on in the same
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
# What else can go wrong, and what happens then: [robustness](../robustness.md).
#
# Next: [many chains, and a GPU](6_many_chains_and_gpu.py)
