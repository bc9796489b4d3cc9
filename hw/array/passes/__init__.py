"""Passes of a program: the matrices whose rows they compute, and their order."""
