"""The task of a network, and its batches: loss, metric, decoding, batches and their variants."""
