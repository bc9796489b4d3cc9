"""Units that move streams and compute nothing: queues, forks, joins, width converters, memories of sequences."""
