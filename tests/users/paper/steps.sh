# A researcher: sequences of different lengths, block-circulant and dense over three seeds, pictures for a paper.
circulant new tones --task lengths
circulant run tones
circulant report runs/tones --json > report.json
circulant sweep sweep.toml --out runs/sweep
for kind in front cost sizes; do circulant plot runs/sweep --kind $kind --columns 1; done
grep -q "3 seeds, mean ± standard deviation" runs/sweep/plot-front.csv
circulant run tones --set training.seed=1 --out runs/seed-1
circulant compare runs/tones runs/seed-1 | grep "2 seeds are too few"
