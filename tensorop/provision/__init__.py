"""Everything external that a job needs: fetched, cached, checked. Network is used here and nowhere below.

Each verb returns a path or a record that is ready for use, or raises `errors.MissingTool` with the command that
brings what is absent. Nothing here needs root. `python -m tensorop.provision WHAT [ARCH]` fetches one piece.
"""
