"""A pooling: windows side by side as a stream, others read from lines."""
