"""What a network is trained for, and on what: loss, metric, decoding, batches and their variants."""
