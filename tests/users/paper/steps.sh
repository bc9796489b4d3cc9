# A researcher: convolution and GRU over sequences of different lengths, three seeds, dense of equal cost, pictures.
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
circulant explore tones --accuracy-loss 5 --device LFE5U-12F --seeds 3 --hours 0.15 --out runs/explore \
  --set training.dense_epochs=4 --set training.admm_epochs=4 --set training.retrain_epochs=4
for kind in front cost sizes; do circulant plot runs/explore --kind $kind --format pdf,png,csv; done
grep -q "dense" runs/explore/plot-front.csv
#: dense networks of equal cost
