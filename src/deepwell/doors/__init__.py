"""The ways out: scikit-learn, plots."""
