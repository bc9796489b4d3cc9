"""Schedules: in which order an array plays the issues of a step, what each of them begins and ends, and which rows are
together; a class each."""
