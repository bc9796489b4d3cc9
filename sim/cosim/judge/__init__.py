"""Judgement of what a simulation has recorded: rules of streams, words against the golden model, cycles."""
