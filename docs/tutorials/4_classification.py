# %% [markdown]
# # Classification
#
# A target of text or truth values is a class. The prediction is a probability for each class.

# %%
import numpy as np
import pandas as pd

import deepwell

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-1, 1, (300, 2)), columns=["east", "north"])
place = np.where(np.hypot(X["east"], X["north"]) < 0.7, "inside", "outside")
wrong = rng.random(300) < 0.05  # one label in twenty is flipped
label = pd.Series(np.where(wrong, np.where(place == "inside", "outside", "inside"), place), name="place")
train, test = slice(0, 200), slice(200, 300)

# %%
model = deepwell.fit(X[train], label[train], preset="quick")
probabilities = model.predict_proba(X[test])
print(model.classes)
print(probabilities[:3].round(2))

# %% [markdown]
# ## How good?
# Compare with the labels, a few of which are wrong by design, and with the truth behind them.

# %%
answers = model.predict(X[test])
right = float(np.mean(answers == label[test]))
truly_right = float(np.mean(answers == place[test]))
print(f"right by the labels {right:.0%}, right in truth {truly_right:.0%}")

# %% [markdown]
# ## Do the probabilities mean what they say?
# Of the answers that the model gives with 80 % confidence, about 80 % should be right.

# %%
reliability = model.calibration(X[test], label[test])
print(pd.DataFrame(reliability._asdict()).round(2))

# %% [markdown]
# `deepwell.DeepGPClassifier` is the same as a scikit-learn classifier. [Likelihoods](../likelihoods.md) has more than
# two classes, and other likelihoods.
#
# Next: [resuming an interrupted fit](5_resuming.py)
