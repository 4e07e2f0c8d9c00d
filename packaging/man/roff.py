"""Manual pages from Markdown: supports the subset that the pages in docs/ use."""

import re

# Characters with a meaning in roff, or that its fonts replace.
SIGNS = {
    "\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", "…": "...", "–": r"\(en",
    "—": r"\(em", "→": r"\(->", "≤": r"\(<=", "≥": r"\(>=", "×": r"\(mu", "“": r"\(lq", "”": r"\(rq", "’": r"\(cq",
}

# The longest line that mandoc(1) accepts without a warning.
WIDTH = 80


def escaped(text, isCode=False):
    """Returns a string in which all special characters of roff are escaped."""
    result = []
    for sign in text:
        if sign == "-" and not isCode:
            result.append(sign)
        elif sign in SIGNS:
            result.append(SIGNS[sign])
        else:
            result.append(sign if ord(sign) < 128 else f"\\[u{ord(sign):04X}]")
    return "".join(result)


# Code first, since it contains no Markdown.
INLINE = re.compile(
    r"(?P<fence>`+)(?P<code>.+?)(?P=fence)|\\(?P<sign>[^A-Za-z0-9\s])|\[(?P<label>(?:`[^`]*`|[^\[\]`])*)\]\((?P<target>[^()\s]*)\)"
    r"|\*\*(?P<strong>.+?)\*\*|\*(?P<emphasis>(?:\\.|[^*\s])(?:\\.|[^*])*?)\*|<(?P<value>(?:\\.|[^<>\\])+)>", re.S)


def inline(text):
    """Returns a line of Markdown in roff: code and strong text are bold, emphasis and values italic."""
    result, end = [], 0
    for match in INLINE.finditer(text):
        result.append(escaped(text[end:match.start()]))
        end = match.end()
        if match["code"] is not None:
            result.append(rf"\fB{escaped(match['code'], isCode=True)}\fR")
        elif match["sign"] is not None:
            result.append(escaped(match["sign"]))
        elif match["label"] is not None:
            isAddress = re.match(r"https?:", match["target"])
            result.append(inline(match["label"]) + (f" ({escaped(match['target'], isCode=True)})" if isAddress else ""))
        elif match["strong"] is not None:
            isOption = re.fullmatch(r"[\w -]+", match["strong"])
            result.append(r"\fB" + (escaped(match["strong"], isCode=True) if isOption
                                    else re.sub(r"\\f[BIR]", "", inline(match["strong"]))) + r"\fR")
        else:
            name = match["emphasis"] if match["emphasis"] is not None else match["value"]
            name = re.sub(r"\\(.)", r"\1", name)
            result.append(rf"\fI{escaped(name, isCode=True)}\fR")
    result.append(escaped(text[end:]))
    return "".join(result)


class Page:
    """One page in the macros of man(7)."""

    def __init__(self, title, number, date, version):
        self.title, self.number = title, number
        self.lines = [rf'.TH {escaped(title.upper(), isCode=True)} {number} {date} "Alight {version}" "Alight"']
        # Without hyphenation and justification, so that names and options are not split.
        self.lines += [".nh", ".ad l"]
        self.isFirst = True

    def name(self, name, what):
        self.section("Name")
        self.put(rf"{escaped(name, isCode=True)} \- {inline(what[:1].lower() + what[1:])}")

    def section(self, title):
        self.lines.append(f".SH {inline(title) if '`' in title else inline(title.upper())}")
        self.isFirst = True

    def subsection(self, title):
        self.lines.append(f".SS {inline(title)}")
        self.isFirst = True

    def paragraph(self, text):
        if not self.isFirst:
            self.lines.append(".PP")
        self.isFirst = False
        self.put(inline(text))

    def entry(self, tag, text):
        self.lines.append(".TP")
        self.put(inline(tag), isWhole=True)
        self.put(inline(text) or r"\&")
        self.isFirst = False

    def item(self, mark, text):
        self.lines.append(f".IP {mark} 4")
        self.put(inline(text))
        self.isFirst = False

    def example(self, text):
        if not self.isFirst:
            self.lines.append(".PP")
        self.lines += [".RS 4", ".nf"]
        for line in text.splitlines():
            self.put(escaped(line, isCode=True) or r"\&", isWhole=True)
        self.lines += [".fi", ".RE"]
        self.isFirst = False

    def put(self, text, isWhole=False):
        """Adds lines of text, wrapped at the maximum width; none may begin like a request or end in a space.

        A whole line continues after a backslash at the end of each part, and so remains one line.
        """
        for line in text.splitlines():
            rest, isBegun = line.rstrip(), False
            while len(rest) > WIDTH and (blank := rest.rfind(" ", 1, WIDTH - 1)) > 0 and rest[:blank].strip():
                part = rest[:blank] + (" \\" if isWhole else "")
                self.lines.append(part if isBegun else self.safe(part))
                rest, isBegun = rest[blank + 1:], isWhole
            self.lines.append(rest if isBegun else self.safe(rest))

    @staticmethod
    def safe(line):
        return rf"\&{line}" if line.startswith((".", "'")) else line

    def text(self):
        return "\n".join(self.lines) + "\n"


def cells(row):
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def table(page, rows):
    """Adds an entry for each row: the first cell is the tag; it includes the second one if there are more."""
    head, body = cells(rows[0]), [cells(row) for row in rows[2:]]
    for row in body:
        tag, rest = row[0], row[1:]
        texts = [f"{name}: {cell}" if name and len(rest) > 1 else cell for name, cell in zip(head[1:], rest) if cell]
        if len(rest) > 1 and "," in head[1]:
            # Type and default.
            tag, texts = f"{tag} ({rest[0]})", rest[1:]
        page.entry(tag, "; ".join(texts))


def from_markdown(page, text):
    """Adds Markdown to a page, without its title, since pages have their own."""
    lines = text.splitlines()
    number = 0

    def block(isPart):
        nonlocal number
        start = number
        while number < len(lines) and isPart(lines[number]):
            number += 1
        return lines[start:number]

    def isText(line):
        return bool(line.strip()) and not re.match(r"#|```|\||- |\d+\. ", line)

    while number < len(lines):
        line = lines[number]
        if not line.strip():
            number += 1
        elif heading := re.match(r"(#+) (.*)", line):
            number += 1
            if len(heading[1]) == 2:
                page.section(heading[2])
            elif len(heading[1]) > 2:
                page.subsection(heading[2])
        elif line.startswith("```"):
            number += 1
            page.example("\n".join(block(lambda each: not each.startswith("```"))))
            number += 1
        elif line.startswith("|"):
            table(page, block(lambda each: each.startswith("|")))
        elif mark := re.match(r"(- |\d+\. )", line):
            number += 1
            text = [line[len(mark[1]):], *block(lambda each: each.startswith("  "))]
            page.item(r"\(bu" if mark[1] == "- " else mark[1].strip(), "\n".join(each.strip() for each in text))
        else:
            page.paragraph("\n".join(block(isText)))
