# A control engineer: a two-layer GRU regression at 1 kHz, a result within 5 µs, a kit and host software before the board.
circulant new drive --task regression
circulant estimate drive --device LFE5U-25F --multipliers 28 --json > estimate.json
#: latency before anything is built
circulant run drive --device LFE5U-25F --multipliers 28
circulant report runs/drive --json > report.json
#: a verified design
python host.py
#: host software on the simulated device
circulant share runs/drive --out drive.zip
circulant check drive.zip
#: a file that another machine verifies
