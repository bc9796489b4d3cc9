"""FPGA devices, and whether a design fits one."""
