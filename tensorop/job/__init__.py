"""The parts of a job: templates, the forecast, delivery."""
