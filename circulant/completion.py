"""Completion in shells: the command that prints the script, and the names that are offered."""
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from circulant.boards.device import devices
from circulant.experiment import FILE, shipped
from circulant.sim.settings import keys
from circulant.training.settings import DataSettings

__all__ = ["completion", "data_sets", "device_names", "experiments", "runs", "that_begin"]

SHELLS = ("bash", "zsh", "fish")

Items = list[CompletionItem]


def experiments(context: click.Context, parameter: click.Parameter, given: str) -> Items:
    """Shipped experiments, and run folders and files as the shell finds them."""
    return [*that_begin(shipped(), given), CompletionItem(given, type="file")]


def runs(context: click.Context, parameter: click.Parameter, given: str) -> Items:
    """Run folders below the folder ``runs``, and folders as the shell finds them."""
    found = [str(path.parent) for path in sorted(Path("runs").glob(f"*/{FILE}"))]
    return [*that_begin(found, given), CompletionItem(given, type="dir")]


def device_names(context: click.Context, parameter: click.Parameter, given: str) -> Items:
    """Devices, with letters of either case."""
    return [CompletionItem(name, help=each.series) for name, each in devices().items()
            if name.lower().startswith(given.lower())]


def data_sets(context: click.Context, parameter: click.Parameter, given: str) -> Items:
    """Data sets and experiments, and files as the shell finds them."""
    return [*that_begin([*(keys(DataSettings)["name"][0].choices or ()), *shipped()], given),
            CompletionItem(given, type="file")]


@click.command("completion", short_help="Print shell completion for bash, zsh or fish")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print a script that completes commands, options, experiments, run folders and devices.

    \b
    Example:
      eval "$(circulant completion bash)"                                     # in ~/.bashrc
      eval "$(circulant completion zsh)"                                      # in ~/.zshrc
      circulant completion fish > ~/.config/fish/completions/circulant.fish
    """
    made = get_completion_class(shell)
    assert made is not None, "click knows all of SHELLS"
    root = click.get_current_context().find_root()
    click.echo(made(root.command, {}, "circulant", "_CIRCULANT_COMPLETE").source())
    return 0


def that_begin(names: Iterable[str], given: str) -> Items:
    """Names that begin as what is given does."""
    return [CompletionItem(name) for name in names if name.startswith(given)]
