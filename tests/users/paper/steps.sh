# A researcher: convolution and GRU over sequences of different lengths, three seeds, pictures.
circulant new tones --task lengths
cp net.py tones/net.py
circulant run tones
circulant report runs/tones --json > report.json
#: a verified design
circulant sweep sweep.toml --out runs/sweep
for kind in front cost sizes; do circulant plot runs/sweep --kind $kind --columns 1; done
grep -q "3 seeds, mean ± standard deviation" runs/sweep/plot-front.csv
#: pictures of three seeds
circulant run tones --set training.seed=1 --out runs/seed-1
circulant compare runs/tones runs/seed-1 | grep "2 seeds are too few"
#: seeds compared
