"""The steps of a run and the run folder that they leave their files in."""
