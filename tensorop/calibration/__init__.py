"""Constants of a board model from figures of the board: `platforms check --runner ssh://`, `calibration:` of a file."""
