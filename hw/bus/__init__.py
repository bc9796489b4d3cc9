"""A design behind a bus: registers and the configuration port for a host, on a clock of its own."""
