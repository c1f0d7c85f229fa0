"""The report: one record of a run's journal and its product, and a page of this record."""
