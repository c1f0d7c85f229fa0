"""The parts of the pipeline: templates, the forecast, delivery."""
