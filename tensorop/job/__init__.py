"""The parts of the pipeline: drafts, the forecast, delivery."""
