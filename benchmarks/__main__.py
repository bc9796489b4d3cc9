"""`python -m benchmarks NAME` runs a benchmark."""
from benchmarks.commands import main

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
