"""The mean or the maximum over the steps of a sequence."""
