"""The command ``circulant partition``: a network over several chips."""
