"""Formulas of the proof notes, which are plain text in the repository, as LaTeX for the site.

A note writes `||x_i||_2 <= r e^-eta`; the page shows it set as mathematics. Nothing is changed but the type: words are
sorted into prose and mathematics, runs of mathematical words become `$...$`, and a run that this small grammar does not
understand stays as it was written.

    run      = words such as `x_i`, `2^-37`, `kappa`, `<=`, `M(a)`; at least one of them cannot be prose
    atom     = number | letter(s) | Greek name | function, each with subscripts and superscripts
    display  = an indented block
"""

from __future__ import annotations

import re

_NAMES = (
    "alpha beta gamma delta zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Sigma Phi Psi Omega"
)
_CALLED = "log exp min max sup inf cosh sinh tanh ln det Pr cos sin sum int prod sqrt"
GREEK = {name: "\\" + name for name in _NAMES.split(" ")} | {
    "epsilon": r"\varepsilon",
    "eps": r"\varepsilon",
    "Lam": r"\Lambda",
    "infinity": r"\infty",
}
FUNCTIONS = {name: "\\" + name for name in _CALLED.split(" ")}
SIGNS = {
    "<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "->": r"\to ", "<<": r"\ll ", ">>": r"\gg ", "||": r"\Vert ",
    "...": r"\ldots ", "..": r"\ldots ", "*": r"\cdot ", "~": r"\sim ", "|": r"\vert ", "<": "<", ">": ">", "=": "=",
    "+": "+", "-": "-", "/": "/", "(": "(", ")": ")", "[": "[", "]": "]", ",": ",\\ ", ":": ":\\ ", ";": ";\\ ",
    ".": "\\cdot ", "'": "'", "!": "!", "∎": r"\ \blacksquare ", "∞": r"\infty ", "·": r"\cdot ", "±": r"\pm ",
    "⟨": r"\langle ", "⟩": r"\rangle ",
}  # fmt: skip
_OPERATORS = {"=", "<=", ">=", "<", ">", "+", "-", "*", "/", "->", "!=", "~", "<<", ">>", "||", "|"}
_ATOM = re.compile(
    r"\d+e-?\d+|\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|\.\.\.|\.\.|<=|>=|!=|->|<<|>>|\|\||\S|\s+"
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class NotMath(Exception):
    """A run that is none; it stays as it was written."""


def latex(text: str) -> str:
    """LaTeX of one formula in plain text; raises NotMath where the grammar ends."""
    text = re.sub(r"<(\w+), (\w+)>", r"⟨\1, \2⟩", text)
    return _Reader(_ATOM.findall(text)).read("").strip()


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise NotMath
        self.at += 1
        return token

    def read(self, end: str) -> str:
        out = []
        while self._peek() != end:
            token = self._next()
            if token.isspace():
                out.append(" " if len(token) == 1 else r"\quad ")
            elif token in "_^":
                out.append(f"{token}{{{self._script()}}}")
            elif token == "{":
                out.append(r"\{" + self.read("}") + r"\}")
            elif token in _CLOSING:
                out.append(token + self.read(_CLOSING[token]) + _CLOSING[token])
            elif token in ")]}":
                raise NotMath
            else:
                out.append(self._plain(token))
        if end:
            self._next()
        return "".join(out)

    def _plain(self, token: str) -> str:
        if token == "sqrt":
            while self._peek().isspace():
                self._next()
            return rf"\sqrt{{{self._script()}}}"
        if token in GREEK or token in FUNCTIONS:
            return (GREEK.get(token) or FUNCTIONS[token]) + " "
        power = re.fullmatch(r"(\d+)e(-?\d+)", token)
        if power:
            lead = "" if power[1] == "1" else power[1] + r"\cdot "
            return f"{lead}10^{{{power[2]}}}"
        if token[0].isdigit() or (token[0] == "." and len(token) > 1 and token[1].isdigit()):
            return token.replace(",", "{,}")
        if token.isalpha() and token.isascii():
            return token if len(token) < 3 else rf"\mathrm{{{token}}}"
        if token == ".":  # between spaces an inner product, else the end of a sentence
            inner = self._before(2).isspace() and self._peek().isspace()
            return SIGNS["."] if inner else "."
        if token in SIGNS:
            return SIGNS[token]
        raise NotMath

    def _before(self, steps: int) -> str:
        return self.tokens[self.at - steps] if self.at >= steps else ""

    def _script(self) -> str:
        """What follows _ or ^ or sqrt: a group, or one atom with its sign and its own subscript."""
        token = self._next()
        if token == "{":
            return self.read("}")
        if token == "(":
            return self.read(")")
        if token in "+-*'":
            return token + (self._script() if token in "+-" else "")
        if token == "inf":
            return r"\infty"
        if token.isspace():
            raise NotMath
        out = self._plain(token)
        if token == "L" and self._peek().isdigit():
            out += self._next()
        return out


def formulas(text: str) -> str:
    """A note with its formulas as LaTeX."""
    out: list[str] = []
    block: list[str] = []
    fenced = False
    for line in [*text.split("\n"), ""]:
        indented = line.startswith("    ") and (bool(block) or not out or not out[-1].strip())
        if block and not indented and line.strip():
            out += _display(block)
            block = []
        if line.startswith("```"):
            fenced = not fenced
        if not fenced and indented:
            block.append(line)
        elif block and not line.strip():
            out += [*_display(block), line]
            block = []
        elif fenced or line.startswith(("#", "```")):
            out.append(line)
        elif re.match(r"\|(?!\|).*\|$", line):
            out.append("|".join(_cell(cell) for cell in line.split("|")))
        else:
            out.append(_inline(line))
    return "\n".join(out).rstrip("\n") + "\n"


def _cell(text: str) -> str:
    """A cell of a table; rulers and what ends inside code stay."""
    return text if text.count("`") % 2 or not text.strip("-: ") else _inline(text)


def _display(block: list[str]) -> list[str]:
    try:
        rows = [latex(_words(line.strip().rstrip(":"))) for line in block if line.strip()]
    except NotMath:
        return block
    body = r" \\ ".join("& " + row for row in rows)
    inside = rf"\begin{{aligned}} {body} \end{{aligned}}" if len(rows) > 1 else rows[0]
    return ["$$", inside, "$$"]


def _words(line: str) -> str:
    """A display with prose in it is left as it is."""
    known = GREEK.keys() | FUNCTIONS.keys()
    for word in re.findall(r"(?<![_^{A-Za-z])[A-Za-z]{3,}(?![A-Za-z(_])", line):
        if word not in known:
            raise NotMath
    return line


def _inline(line: str) -> str:
    """Code, links and emphasis stay; the rest is searched for formulas."""
    parts = re.split(
        r"(`[^`]*`|\[[^\]]*\]\([^)]*\)|\*\*[^*]+\*\*|(?<!\w)\*[A-Z][^*]*\*|\$[^$]*\$)", line
    )
    return "".join(part if i % 2 else _runs(part) for i, part in enumerate(parts))


def _runs(text: str) -> str:
    pieces = re.split(r"(\s+)", text)
    kinds = [_kind(piece) for piece in pieces]
    for i, piece in enumerate(
        pieces
    ):  # the article "a" is a letter where an operator stands beside it
        if piece.strip("().,;:") in ("a", "A", "I") and kinds[i] == "prose":
            beside = {pieces[j] for j in (i - 2, i + 2) if 0 <= j < len(pieces)}
            if beside & _OPERATORS:
                kinds[i] = "letter"
    out, i = [], 0
    while i < len(pieces):
        if kinds[i] in ("prose", "space"):
            out.append(pieces[i])
            i += 1
            continue
        j = i
        while (
            j + 2 < len(pieces)
            and kinds[j + 2] not in ("prose", "space")
            and "\n" not in pieces[j + 1]
        ):
            if re.search(r"[.;:]$", pieces[j]) and kinds[j] != "operator":
                break
            j += 2
        j = _balanced(pieces, kinds, i, j)
        out.append(_run(pieces[i : j + 1], kinds[i : j + 1]))
        i = j + 1
    return "".join(out)


def _balanced(pieces: list[str], kinds: list[str], i: int, j: int) -> int:
    """The end of a run that stops inside a bracket, as N(v, s^2 I) does before I: on to where it closes, over words
    that may be letters only."""
    end = j
    while _open("".join(pieces[i : end + 1])) > 0 and end + 2 < len(pieces):
        end += 2
        word = pieces[end].strip(".,;:()[]")
        if kinds[end] == "prose" and (len(word) > 2 or not word.isalpha()):
            return j
    return end if _open("".join(pieces[i : end + 1])) <= 0 else j


def _run(pieces: list[str], kinds: list[str]) -> str:
    text = "".join(pieces)
    body = text.rstrip(".,;:")
    tail = text[len(body) :]
    head = ""
    while body and body[0] in "([" and _open(body) > 0:
        head, body = head + body[0], body[1:]
    while body and body[-1] in ")]" and _open(body) < 0:
        tail, body = body[-1] + tail, body[:-1]
    rooted = pieces[0] in ("sqrt", "<=", ">=") and len(pieces) > 1
    strong = (
        rooted
        or "strong" in kinds
        or ("letter" in kinds and (len(pieces) == 1 or "operator" in kinds))
    )
    letters = "letter" in kinds
    if (
        not (strong or letters)
        or not body
        or pieces[-1] in _OPERATORS
        or pieces[0] in _OPERATORS - {"-", "<=", ">="}
    ):
        return text
    try:
        return f"{head}${latex(body)}${tail}"
    except NotMath:
        return text


def _open(text: str) -> int:
    return sum(text.count(c) for c in "([") - sum(text.count(c) for c in ")]")


def _kind(piece: str) -> str:
    """prose, space, operator, weak (a number), letter (a variable alone) or strong (surely mathematics)."""
    if not piece or piece.isspace():
        return "space"
    if piece in _OPERATORS:
        return "operator"
    word = piece.strip(".,;:")
    bare = word.strip("()[]")
    if not bare:
        return "weak" if word else "prose"
    if re.fullmatch(r"[(\w, ]*-(?:DP|th|fold)", bare):
        return "prose"
    if re.fullmatch(r"[-+]?\d[\d,]*\.?\d*|\.\d+", bare):
        return "weak"
    if bare.rstrip("'") in GREEK or bare == "lam":
        return "letter"
    if re.fullmatch(r"\([ivx]+\)|\(?\d+-\d+\)?", word):  # an enumeration, a range of sections
        return "prose"
    if re.fullmatch(r"[B-HJ-Zb-z]'?", bare):
        return "letter"
    if bare in FUNCTIONS and bare not in ("int", "inf"):  # a log line is prose, log n is not
        return "weak"
    if re.search(r"[\"`\\#%&@?“”]|^\W*[A-Za-z]+_[a-z]{4,}|\.\w{2,}$|://", word):
        return "prose"
    for match in re.finditer(r"[A-Za-z]+", word):
        name, before, after = match[0], word[: match.start()][-1:], word[match.end() :][:1]
        if len(name) < 3 or name in GREEK or name in FUNCTIONS or name == "lam":
            continue
        if before in ("_", "^", "{") or after in ("(", "_", "^"):
            continue
        return "prose"
    if re.search(r"[_^=<>*/+|~]|\w'*\(|\[|\d[a-z]|\w-\w", word) and re.search(r"[A-Za-z\d]", word):
        if re.fullmatch(
            r"\W*[A-Za-z]{1,2}-[A-Za-z]{2,}\W*|\d+-[A-Za-z]{2,}|[A-Za-z]+\d?|\d+[A-Z]", bare
        ):
            return "prose"
        return "strong"
    return "prose"
