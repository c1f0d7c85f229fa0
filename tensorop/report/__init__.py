"""A run's journal and its product as one record, and the record as a page."""
