"""A kind that is added from outside: a gain, which doubles each value, from torch to Verilog and C.

Importing it registers the kind in the whole process, as the files of a real one do.
"""
from circulant.sim.kinds import registry
from tests.sample_kind import gain

registry.KINDS["gain"] = gain.KIND
