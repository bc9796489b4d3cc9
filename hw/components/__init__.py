"""Components of which the units of several kinds are made: cells, joins, held vectors, lines of images."""
