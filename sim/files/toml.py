"""TOML texts that nobody vouches for: integers have 64 bits at the most, and a fault is told in a few words."""
import tomllib
from typing import Any

from circulant.sim.files import files

__all__ = ["parse"]


def parse(text: str) -> dict[str, Any]:
    """The tables of a text.

    Raises:
        ValueError: saying what is wrong with it.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(files.reason(error)) from None
    except ValueError:  # What Python says of a number of thousands of digits names a setting of Python's.
        raise ValueError("an integer has too many digits") from None
    except RecursionError:
        raise ValueError("it has too many brackets within each other") from None
    level: list[Any] = [tables]
    while level:
        if any(type(each) is int and each.bit_length() > 63 for each in level):
            raise ValueError("an integer must fit 64 bits")
        level = [inner for each in level if isinstance(each, dict | list)
                 for inner in (each.values() if isinstance(each, dict) else each)]
    return tables
