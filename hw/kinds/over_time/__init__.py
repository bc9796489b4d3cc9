"""The mean, the maximum or the last of the steps of a sequence."""
