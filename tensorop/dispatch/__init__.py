"""The choice among variants: what is known of them, what is measured inside their library, and the trees it gives."""
