"""A Sphinx extension: the pages of the site that are made from the package itself, and notebooks.

A line `<!-- generated: NAME -->` in a page is replaced by what the function NAME below gives, as Markdown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def command_line() -> str:
    """Every command with its own help text."""
    from routelearn.cli import COMMANDS, command

    parts = []
    for name, summary in COMMANDS.items():
        made = command(name)
        with made.make_context(f"routelearn {name}", [], resilient_parsing=True, terminal_width=100) as context:
            parts.append(f"## {name}\n\n{summary}\n\n```text\n{made.get_help(context)}\n```\n")
    return "\n".join(parts)


def http() -> str:
    """The paths of the service, then its schemas, as its OpenAPI description has them."""
    from routelearn.serve.app import create_app

    described = create_app().openapi()
    parts = ["## Paths\n"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            parts.append(f"### {method.upper()} {path}\n\n{operation.get('description', '')}\n")
            parts += _parameters(operation)
            parts += _exchange(operation)
    parts.append("## Schemas\n")
    for name, schema in sorted(described["components"]["schemas"].items()):
        parts.append(f"(schema-{name.lower()})=\n### {name}\n\n{schema.get('description', '')}\n")
        parts += _fields(schema)
    return "\n".join(parts)


def _parameters(operation: dict[str, Any]) -> list[str]:
    rows = [
        f"| `{one['name']}` | {_type(one['schema'])} | {_cell(one.get('description', ''))} |"
        for one in operation.get("parameters", ())
    ]
    return ["| parameter | type | |\n|---|---|---|\n" + "\n".join(rows) + "\n"] if rows else []


def _exchange(operation: dict[str, Any]) -> list[str]:
    """What the body holds, and a row for each status."""
    lines = [f"Body: {_content(operation['requestBody'])}\n"] if "requestBody" in operation else []
    rows = [
        f"| {status} | {_cell(answer.get('description', ''))} | {_content(answer)} |"
        for status, answer in operation["responses"].items()
    ]
    return [*lines, "| status | | answer |\n|---|---|---|\n" + "\n".join(rows) + "\n"]


def _content(holder: dict[str, Any]) -> str:
    """The schema of JSON, and the media type of anything else."""
    return ", ".join(
        _type(content.get("schema", {})) if media == "application/json" else f"`{media}`"
        for media, content in holder.get("content", {}).items()
    )


def _fields(schema: dict[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    rows = []
    for name, field in schema.get("properties", {}).items():
        default = f"`{json.dumps(field['default'])}`" if "default" in field else "required" if name in required else ""
        rows.append(f"| `{name}` | {_type(field)} | {default} | {_cell(field.get('description', ''))} |")
    return ["| field | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"] if rows else []


def _type(schema: dict[str, Any]) -> str:
    """A JSON schema's type in a few words, with a link to each schema that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#schema-{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "contentSchema" in schema:
        return f"JSON text of {_type(schema['contentSchema'])}"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def notebook(text: str) -> str:
    """A notebook as Markdown: its text, its code, and what the code printed and drew."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})".replace("\n", ""))
            elif shown := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
                parts.append(f"```text\n{shown}\n```")
    return "\n\n".join(parts) + "\n"


PAGES = {"command_line": command_line, "http": http}


def fill(app: Any, name: str, source: list[str]) -> None:
    if Path(app.env.doc2path(name)).suffix == ".ipynb":
        source[0] = notebook(source[0])
    source[0] = MARK.sub(lambda mark: PAGES[mark[1]](), source[0])


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
