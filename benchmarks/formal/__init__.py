"""Proofs about circuits: Yosys makes a netlist, Python a graph of AND gates with what is to hold, ABC proves it."""
