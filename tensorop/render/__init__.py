"""From a template and a configuration to C: the only place, with the prompts and the gate, that touches Jinja2."""
