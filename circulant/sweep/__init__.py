"""Design-space sweeps: block sizes × bit widths of weights and activations × multipliers, over one or more experiments.

`grid` reads a file into points, `work` trains and evaluates them, `store` keeps what was computed, `run` does it all in
several processes; `pareto`, `sheets` and `pictures` show the rows that come out.
"""
