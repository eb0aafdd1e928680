"""Hooks of the documentation site (mkdocs.yml): what GitHub shows and MkDocs does not know.

* Fences with a file name (``jena family.jena``) become code blocks with a title.
* CONTRIBUTING.md and CHANGELOG.md, which lie beside docs/, are pages of the site as well.
* Links to files of the repository that are no pages are shown as text.
* Lists may follow a paragraph at once, and nest by two spaces.
* The decisions are listed in the navigation, each by its title.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md")

_FENCE = re.compile(r"^```(\w+) +([^\s`]+)[ ]*$", re.MULTILINE)
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"(?:[*-]|\d+\.) ")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")
_LANGUAGES = {
    "rspql": "sparql",
    "csparql": "sparql",
    "cqels": "sparql",
    "sparqlstream": "sparql",
    "strider": "sparql",
    "ctsparql": "sparql",
    "epsparql": "sparql",
    "hfc": "text",
    "jena": "text",
    "lars": "prolog",
    "ntt": "text",
}


def on_config(config: Any) -> Any:
    """Puts the decisions into the navigation, in the place of their pattern."""
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    pages = [{_title(path): f"decisions/{path.name}"} for path in decisions]

    def expanded(items: list[Any]) -> list[Any]:
        result: list[Any] = []
        for item in items:
            if item == "decisions/*.md":
                result += pages
            elif isinstance(item, dict):
                result.append(
                    {key: expanded(value) if isinstance(value, list) else value for key, value in item.items()}
                )
            else:
                result.append(item)
        return result

    config.nav = expanded(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    for name in BESIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def fence(match: re.Match[str]) -> str:
        language = _LANGUAGES.get(match[1], match[1])
        return f"```{language}" if match[2] == "output" else f'```{language} title="{match[2]}"'

    def is_page(uri: str) -> bool:
        file = files.get_file_from_path(uri)
        return file is not None and file.inclusion.is_included()

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        beside = page.file.src_uri in BESIDE
        in_repository = posixpath.normpath(posixpath.join("" if beside else f"docs/{folder}", target))
        if in_repository in BESIDE:
            uri = in_repository
        elif in_repository.startswith("docs/"):
            uri = in_repository.removeprefix("docs/")
        else:
            return text
        if not is_page(uri):
            index = f"{uri}/README.md"
            if not is_page(index):
                return text
            uri = index
        return f"[{text}]({posixpath.relpath(uri, folder or '.')}{anchor})"

    parts = _CODE.split(_LINK.sub(link, markdown))
    parts[::2] = map(_with_lists, parts[::2])
    return _FENCE.sub(fence, "".join(parts))


def _with_lists(text: str) -> str:
    """Lists as Python-Markdown reads them: behind an empty line, nested by four spaces."""
    lines: list[str] = []
    in_list = False
    for line in text.split("\n"):
        if _ITEM.match(line):
            if not in_list and lines and lines[-1].strip():
                lines.append("")
            in_list = True
        elif line and not line.startswith(" "):
            in_list = False
        indent = len(line) - len(line.lstrip(" "))
        lines.append(" " * indent + line if in_list else line)
    return "\n".join(lines)


def _title(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix("# ").replace(":", ".", 1)
