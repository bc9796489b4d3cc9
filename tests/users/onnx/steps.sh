# An integrator who is given a trained network as an ONNX file, and samples of its inputs.
python colleague.py
circulant import vibration.onnx --data calibration.npz
circulant generate runs/vibration --device LFE5U-25F
circulant simulate runs/vibration
circulant report runs/vibration --json > report.json
#: a verified design of an ONNX file
