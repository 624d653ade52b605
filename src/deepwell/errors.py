"""The error for input that cannot be used."""


class InputError(ValueError):
    """Input that cannot be used; the message names the culprit in one sentence."""
