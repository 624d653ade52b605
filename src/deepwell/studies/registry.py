"""The studies by name: a new one is a file and a line here."""

from deepwell.studies import curves, gaussianity, large_tables, toy, uci
from deepwell.studies.study import Study

_QUICKEST_FIRST = (
    toy.TOY,
    large_tables.CEP,
    curves.MCEM,
    curves.RUNTIME,
    large_tables.MNIST,
    gaussianity.GAUSSIANITY,
    uci.UCI,
)
STUDIES: dict[str, Study] = {study.name: study for study in _QUICKEST_FIRST}
