"""What the pages have in common: comments as Markdown, tables, anchors."""

import re

# "  * text" and "  1. text".
_ITEM = re.compile(r" *(\*|\d+\.) +(.*)")


class Undocumented(Exception):
    """Something public has no comment or docstring."""


def _marked(text):
    """With status codes as code."""
    return re.sub(r"(?<![\w`.])((?:INVALID|RESOURCE|FAILED|DEADLINE|NOT)_[A-Z]+|ABORTED|CANCELLED|INTERNAL|"
                  r"UNAVAILABLE|UNIMPLEMENTED|UNAUTHENTICATED|UNKNOWN)(?![\w`])", r"`\1`", text)


def prose(text):
    """A comment as Markdown: each paragraph is a line, and lists stay lists."""
    return "\n\n".join(_block(lines) for lines in _paragraphs(text))


def sentence(text):
    """A comment as one line, for a cell of a table."""
    return _marked(" ".join(text.split()))


def capital(text):
    """With a capital letter, if it begins with a word and not with a name such as bfloat16."""
    return text[0].upper() + text[1:] if re.match(r"[a-z]+[ ,:]", text) else text


def table(heads, rows):
    """A table. Cells may have any text."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def anchor(heading):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link(heading):
    return f"[{heading}](#{anchor(heading)})"


def with_links(text, names):
    """The text with each of `names` as a link to its heading, except in code blocks, headings and links."""
    word = rf"(?<![\w.\[`/])(`?)({'|'.join(sorted(names, key=len, reverse=True))})((?:\.\w+)*)(`?)(?![\w`\]/(])"

    def linked(found):
        before, name, fields, after = found.groups()
        return f"[{before}{name}{fields}{after}](#{anchor(name)})" if before == after else found[0]

    parts = re.split(r"(^```.*?^```$|^#[^\n]*$|^\| ?`\w+`|\[[^\[\]\n]*\]\([^)\n]*\))", text, flags=re.M | re.S)
    return "".join(part if i % 2 else re.sub(word, linked, part) for i, part in enumerate(parts))


def check_anchors(page):
    """GitHub numbers headings that are alike, so that links would lead to the wrong one."""
    found = [anchor(heading) for heading in re.findall(r"^#+ (.+)$", page, re.M)]
    twice = {each for each in found if found.count(each) > 1}
    if twice:
        raise ValueError(f"headings that occur twice: {sorted(twice)}")


def _paragraphs(text):
    found = [[]]
    for line in text.split("\n"):
        if line.strip():
            found[-1].append(line)
        else:
            found.append([])
    return [lines for lines in found if lines]


def _block(lines):
    if _ITEM.fullmatch(lines[0]):
        entries = _entries(lines)
        return "\n".join(f"{'-' if mark == '*' else mark} {_marked(meaning)}" for mark, meaning in entries)
    return sentence(" ".join(lines))


def _entries(lines):
    """Items, each of which goes on in the lines after its first."""
    entries = []
    for line in lines:
        begun = _ITEM.fullmatch(line)
        if begun:
            entries.append([begun[1], begun[2]])
        else:
            entries[-1][1] += " " + line.strip()
    return entries
