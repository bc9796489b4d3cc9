"""The user's cache folder: where it is, and that it is refused where it cannot be written."""
from pathlib import Path

import pytest

from circulant.sim.files import cache
from circulant.sim.refusal import Refusal


@pytest.mark.parametrize(("environment", "folder"), [
    ({"CIRCULANT_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own"),
    ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/circulant"),
    ({"HOME": "/home/someone"}, "/home/someone/.cache/circulant"),
])
def test_it_is_where_the_environment_says(monkeypatch, environment, folder):
    for name in ("CIRCULANT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.cache_folder() == Path(folder)


def test_a_part_is_made(monkeypatch, tmp_path):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "own"))
    assert cache.store("data") == tmp_path / "own" / "data"
    assert cache.store("data").is_dir()


def test_a_folder_that_cannot_be_written_is_refused(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "file"))
    with pytest.raises(Refusal, match=rf"^The cache folder {tmp_path}/file/data must be writable, but it is not; name "
                                      "another one in CIRCULANT_CACHE$"):
        cache.store("data")
