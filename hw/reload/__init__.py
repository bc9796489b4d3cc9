"""The configuration port, through which weights and states are exchanged at run time."""
