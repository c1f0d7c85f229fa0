"""Renders C from a template and a configuration. Besides the prompts and the gate, only this package uses Jinja2."""
