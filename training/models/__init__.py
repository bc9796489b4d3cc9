"""The models and recurrent cells that experiments name."""
