# A maker of a device on a battery: the number of the class alone, in standard cells, and its power at ten frames a second.
circulant new spotter --task lengths
circulant estimate spotter --multipliers 16
#: latency before anything is built
circulant run spotter --multipliers 16 --set hardware.argmax=true --set hardware.clock_gating=true
circulant report runs/spotter --json > report.json
#: a verified design that gives the class
export CIRCULANT_DATA=$CELLS    # The folder of liberty/sky130hd.
circulant asic runs/spotter --library sky130hd --mhz 5 --rate 10 --json > asic.json
python rest.py
#: area, energy, and power at rest, of a netlist that equals the golden model
