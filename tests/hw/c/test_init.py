import subprocess
import sys

from circulant.hw import c


def test_the_c_target_needs_no_amaranth():
    program = "import sys; sys.modules['amaranth'] = None; from circulant.hw.c import Emulator, generate_c"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_public_names():
    assert c.__all__ == ["CDesign", "Emulator", "generate_c"]
