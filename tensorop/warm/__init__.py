"""Where a search begins: what earlier ones found, read from journals and files of winners."""
