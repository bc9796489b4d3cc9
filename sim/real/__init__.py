"""The mathematics: the same layers and networks in float64."""
