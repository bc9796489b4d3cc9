"""What a new run folder may take the place of."""
import pytest

from circulant.experiment import FILE, save
from circulant.report import report
from circulant.run.place import ENTRIES, clear, require_free
from circulant.run.run_folder import CHECKPOINT
from circulant.sim.refusal import Refusal


def test_every_entry_of_a_run_is_known(finished):
    report.write(finished)
    assert {path.name for path in finished.folder.iterdir()} <= set(ENTRIES)


def test_a_run_is_replaced_only_where_it_may(finished):
    with pytest.raises(Refusal, match=rf"^{finished.folder} must hold no run, but has {FILE}; choose "):
        require_free(finished.folder, force=False)
    require_free(finished.folder, force=True)


def test_an_unfinished_training_is_a_run(fresh):
    save(fresh.experiment, fresh.path(CHECKPOINT))
    with pytest.raises(Refusal, match=r" must hold no run, but has checkpoint; choose another name, or"):
        require_free(fresh.folder, force=False)
    require_free(fresh.folder, force=True)


def test_what_is_no_run_is_never_replaced(tmp_path):
    (tmp_path / "data.npz").write_bytes(b"mine")
    for force in (False, True):
        with pytest.raises(Refusal, match=r" must have no data.npz, as a new run .* is no run folder that could be re"):
            require_free(tmp_path, force=force)


def test_files_of_another_kind_are_in_nobodys_way(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "missing"):
        require_free(folder, force=False)


def test_a_run_goes_as_a_whole_and_other_files_stay(finished):
    report.write(finished)
    finished.path("notes.txt").write_text("mine")
    clear(finished.folder)
    assert [path.name for path in finished.folder.iterdir()] == ["notes.txt"]


def test_what_is_left_of_a_removal_that_was_stopped_is_a_run(finished, monkeypatch):
    from circulant.run import place
    from circulant.run.run_folder import STEPS, recorded

    def stop(path):
        if path.name == STEPS["generate"].record:
            raise KeyboardInterrupt
        removed(path)

    removed = place.discard
    monkeypatch.setattr(place, "discard", stop)
    with pytest.raises(KeyboardInterrupt):
        clear(finished.folder)
    recorded(finished, "generate")
    assert not finished.path(STEPS["simulate"].record).exists()
