"""Ways out of the package: scikit-learn estimators and plots."""
