"""The part of a run that people see: report, plots, tables."""
