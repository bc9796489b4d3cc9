"""A kind that is added from outside: a gain, which doubles each value, from torch to Verilog and C."""
