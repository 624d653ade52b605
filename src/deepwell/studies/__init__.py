"""The paper's studies."""
