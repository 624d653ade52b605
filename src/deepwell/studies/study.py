"""The frame of every study: sweep its jobs into a row store, then draw its page from the rows."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from deepwell.studies.job import Job
from deepwell.studies.options import CONDITIONS, StudyDefaults, StudyOptions
from deepwell.studies.row_store import Row, RowStore
from deepwell.studies.study_page import StudyPage, write_page
from deepwell.studies.sweep import sweep


class Study(NamedTuple):
    """One claim of the paper, as rows that are made once, a table and a figure.

    ``key`` names the fields that tell the rows of one run apart. ``takes`` names the options that apply to this study,
    besides those that apply to all. ``jobs`` checks the options and says what to run. ``draw_page`` returns None while
    there is nothing to show. ``describe_row`` is the progress line of a new row.
    """

    name: str
    key: tuple[str, ...]
    defaults: StudyDefaults
    takes: tuple[str, ...]
    jobs: Callable[[StudyOptions], Iterable[Job]]
    draw_page: Callable[[StudyOptions, Sequence[Row]], StudyPage | None]
    describe_row: Callable[[Row], str]

    @property
    def row_key(self) -> tuple[str, ...]:
        """The fields that tell any two rows of the study apart."""
        return (*self.key, "seed", *CONDITIONS)

    def run(self, options: StudyOptions) -> None:
        """Make the missing rows, then write the page, also after an error. If both fail, the first error is raised."""
        options = options.for_study(self.defaults)
        jobs = list(self.jobs(options))
        store = RowStore(options.folder, self.name, self.row_key)
        try:
            sweep(store, jobs, options.tell, self.describe_row)
        except BaseException:
            try:
                self._write_page(store, options)
            except Exception as error:
                options.tell(f"{self.name}: no table and figure of the rows so far: {error}")
            raise
        self._write_page(store, options)

    def _write_page(self, store: RowStore, options: StudyOptions) -> None:
        write_page(store, options, lambda rows: self.draw_page(options, rows))
