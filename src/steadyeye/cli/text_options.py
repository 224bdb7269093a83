"""Options that are text, or were not given, taken as they are.

Typer 0.29 converts the value of every option by pydantic, which takes 0.1 s of a processor to
import: more than most commands whose options are text. Earlier versions do not use it.
"""

from functools import partial
from typing import Any

import typer

TEXT = (str, list[str])


def keep_text(command: Any) -> None:
    """Lets the options of a command take text without pydantic; all else is converted as before."""
    for parameter in (*command.params, command.get_help_option(typer.Context(command))):
        kind = getattr(parameter, "type_descriptor", None)
        if kind is not None and not kind.parameter_info.parser:
            convert = parameter.process_value
            parameter.process_value = partial(_take, parameter, kind.annotation in TEXT, convert)


def _take(parameter: Any, is_text: bool, convert: Any, context: Any, value: Any) -> Any:
    """The value of an option: as given if it is text, or if it may be left out and was.

    `convert`: what Typer does with any other value, and with one that is missing.
    """
    several = parameter.multiple or parameter.nargs != 1
    texts = value if several and isinstance(value, list | tuple) else [value]
    if value is None and not parameter.required:
        found: Any = () if several else None
    elif is_text and texts and all(isinstance(each, str) for each in texts):
        found = list(texts) if several else value
    else:
        return convert(context, value)
    return parameter.callback(context, parameter, found) if parameter.callback else found
