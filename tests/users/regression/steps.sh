# An engineer with a training loop of their own: the commands go on from the run folder that it saves.
python train.py
circulant generate runs/meter --multipliers 24
circulant simulate runs/meter
circulant report runs/meter --json > report.json
#: a verified design of a training loop of one's own
