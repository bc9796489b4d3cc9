"""Estimates of a run or an experiment on a device: the command, and networks of experiments that were not trained."""
