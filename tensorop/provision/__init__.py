"""Fetches, checks and caches the external tools and libraries that jobs need. All downloads happen here.

Functions return a path or a record that is ready for use, or raise `errors.MissingTool` with the command that fetches
the missing piece. Nothing here needs root. `python -m tensorop.provision WHAT [ARCH]` fetches one piece.
"""
