"""Objects out of a user's files: what is missing or raises is said in one sentence, with the place."""
import pytest

from circulant.sim.files.user_code import calling, content, load_object, parted
from circulant.sim.refusal import Refusal


@pytest.fixture
def written(tmp_path):
    def write(text, name="net.py"):
        (tmp_path / name).write_text(text)
        return f"{tmp_path / name}:Net"

    return write


def test_a_file_is_run_once_for_each_content(written):
    path = written("class Net: pass\n")
    one = load_object("model.path", path)
    assert load_object("model.path", path) is one
    written("class Net:\n    wide = True\n")
    assert load_object("model.path", path).wide, "another content is another module"


def test_what_a_module_may_expect(written):
    path = written("import dataclasses\n@dataclasses.dataclass\nclass Net:\n    file: str = __file__\n")
    assert load_object("model.path", path)().file == path.rpartition(":")[0]


@pytest.mark.parametrize("path", ["", "net.py", "net:Net", "net.py:", "net.py:a b", ":Net", "net.txt:Net"])
def test_a_path_names_file_and_object(path):
    with pytest.raises(Refusal, match=r"^model\.path must name a Python file and what to take from it, such as 'net"):
        parted("model.path", path)


def test_a_missing_file(tmp_path):
    with pytest.raises(Refusal, match=rf"^model\.path must name a file that exists, but there is no {tmp_path}/no\.py"):
        content("model.path", f"{tmp_path}/no.py:Net")


def test_a_missing_name(written):
    with pytest.raises(Refusal, match=r"net\.py must have 'Net', which model\.path names, .*; did you mean 'Nets'\?$"):
        load_object("model.path", written("class Nets: pass\n"))


@pytest.mark.parametrize(("text", "said"), [
    ("x = 1\nclass Net:\n    y = unknown\n", r"line 3: NameError: name 'unknown' is not defined"),
    ("import no_such_module_anywhere\n", r"line 1: ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
    ("def Net(:\n", r"line 1: SyntaxError: "),
    ("raise SystemExit(3)\n", r"line 1: SystemExit: 3"),
    ("import json\n\nNet = json.loads('{')\n", r"line 3: json.decoder.JSONDecodeError: "),
])
def test_a_file_that_raises(written, text, said):
    with pytest.raises(Refusal, match=rf"net\.py must run without an error, but .*net\.py, {said}"):
        load_object("model.path", written(text))


def test_a_call_that_raises(written):
    path = written("def Net(size):\n    return 1 // size\n")
    assert calling("model.path", path, load_object("model.path", path), size=1) == 1
    with pytest.raises(Refusal, match=r"^model\.path = 'net\.py:Net' must run, but .*net\.py, line 2: ZeroDiv"):
        calling("model.path", path, load_object("model.path", path), 0)
    with pytest.raises(Refusal, match=r"TypeError: Net\(\) got an unexpected keyword argument 'wide'"):
        calling("model.path", path, load_object("model.path", path), wide=3)
