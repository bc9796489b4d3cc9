"""One C file in the making: its shared functions, its constant tables, and how templates are rendered."""
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, singledispatch
from pathlib import Path

import jinja2

from circulant.hw.ctext.value import number, storage, width
from circulant.sim.golden.stages import Stage as Layer
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Held
from circulant.sim.shape.window import Flow

__all__ = ["Array", "Stage", "Unit", "beside", "clips", "over", "stage", "table", "unsupported"]

@cache
def beside(file: str) -> Callable[..., str]:
    """The renderer of the templates that stand beside a file of Python, or in its folder ``templates``.

    It takes the name of a template, and values by their names in it.
    """
    here = Path(file).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([here, here / "templates"]), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True)
    return lambda template, **values: environment.get_template(template).render(**values)


def table(entries: Iterable[int | str], indent: int = 4) -> str:
    """The initializer of a constant table, in lines of at most 120 characters."""
    return textwrap.fill(", ".join(str(entry).replace(" ", "~") for entry in entries), 120, initial_indent=" " * indent,
                         subsequent_indent=" " * indent, break_on_hyphens=False).replace("~", " ")


@dataclass(frozen=True)
class Array:
    """A member of the state struct: ``length`` integers for each lane."""

    type: str
    name: str
    length: int


@dataclass(frozen=True)
class Stage:
    """The C of one layer: a function ``<prefix>_layer(state, x, y)``.

    Parameters:
        prefix: begins the names of everything in ``text``.
        summary: what the layer is, in words.
        output: where y lives in the state struct; one of ``states``, or memory that holds nothing between calls.
        states: arrays that the next step starts from, which a reset sets to zero.
        work: further memory that holds nothing between calls.
        then: further stages, which are needed once a sequence.
        inner: stages whose functions that of the stage calls; their text is part of its own.
    """

    prefix: str
    summary: str
    text: str
    output: Array
    states: tuple[Array, ...]
    work: tuple[Array, ...]
    then: tuple["Stage", ...] = ()
    inner: tuple["Stage", ...] = ()

    @property
    def all(self) -> list["Stage"]:
        """The stage behind those within it."""
        return [*(part for each in self.inner for part in each.all), self]


@singledispatch
def stage(layer: Layer, unit: "Unit", prefix: str, *, foreign: bool) -> Stage:
    """The C of a layer; each kind has an implementation in the file of its name.

    Parameters:
        foreign: whether x comes from outside, so that it may be aligned in any way.

    Raises:
        Refusal: when the C target does not know the kind, or an integer on the way could leave 63 bits.
    """
    raise unsupported(layer)


@singledispatch
def clips(layer: Layer) -> bool:
    """Whether the C of a layer clips what comes from outside to its format, as a kind says beside its `stage`."""
    return False


def over(layer: Layer, flow: Flow, unit: "Unit", prefix: str, *, foreign: bool) -> Stage:
    """The C of a layer for the flow that comes: of images pixel by pixel, where the layer takes each by itself."""
    if flow.pixels == 1 or getattr(layer, "grid", None) is not None:
        return stage(layer, unit, prefix, foreign=foreign)
    each = stage(layer, unit, f"{prefix}_pixel", foreign=foreign)
    sources = [(storage(form), 0 if n and isinstance(layer, Held) else layer.inputs)
               for n, form in enumerate(getattr(layer, "taken", ()))]
    text = beside(__file__)("pixels.c.j2", unit=unit, prefix=prefix, layer=layer, pixels=flow.pixels, sources=sources,
                            y_type=each.output.type)
    return Stage(prefix, f"{flow.pixels} times {each.summary}", f"{each.text}\n{text}", Array(
        each.output.type, f"{prefix}_y", each.output.length * flow.pixels), states=(), work=(), inner=(each,))


def unsupported(layer: Layer) -> Refusal:
    """The refusal of a layer that the C target does not know."""
    kinds = [each for each in stage.registry if each is not object]
    for each in kinds:  # Grows on the way.
        kinds += each.__subclasses__()
    known = ", ".join(sorted({kind.kind for kind in kinds if hasattr(kind, "kind")}))
    return Refusal(f"The layers of the C target must be of the kinds {known}, but "
                   f"{layer.name!r} is of the kind {layer.kind!r}; leave it out, or generate Verilog")


@dataclass
class Unit:
    """The parts that the layers of one file share. A function or table is added once, under its name.

    Parameters:
        name: prefix of everything public.
        table_bytes: size of all constant tables.
    """

    name: str
    functions: dict[str, str] = field(default_factory=dict)
    table_bytes: int = 0

    def function(self, name: str, text: Callable[[], str]) -> str:
        """``name``; its text, which may ask for further functions, is made the first time only."""
        if name not in self.functions:
            made = text()
            self.functions[name] = made
        return name

    def table(self, name: str, values: Sequence[int], *, looked_up: bool = False) -> str:
        """The text of a constant table in the narrowest type.

        Parameters:
            looked_up: each lane reads an entry of its own.
        """
        type = number(values)
        self.table_bytes += len(values) * width(type) // 8
        if looked_up and width(type) < 32:
            type = f"ENTRY({type})"
        return f"static const {type} {name}[{len(values)}] = {{\n{table(values)}\n}};\n"
