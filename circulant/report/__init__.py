"""What people see of a run: report, plots, tables."""
