# A researcher with recorded gestures and a torch model: data and model of their own through one command.
circulant new gestures
python record.py gestures/gestures.npz
cp net.py gestures/net.py
python - <<'EDIT'
from pathlib import Path

path = Path("gestures/gestures.toml")
text = path.read_text()
for old, new in {'name = "python"': 'name = "npz"', 'path = "data.py:load"': 'path = "gestures.npz"',
                 "hidden = 32": "hidden = 16"}.items():
    assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
    text = text.replace(old, new)
path.write_text(text)
EDIT
circulant data gestures/gestures.npz
circulant inspect gestures
#: what each layer becomes
circulant run gestures
circulant report runs/gestures --mhz 50 --json > report.json
#: a verified design
