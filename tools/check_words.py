#!/usr/bin/env python3
"""Checks that texts for readers avoid a short list of constructions, and names the replacement for each.

    tools/check_words.py [ROOT]            check the texts of CHECKED below
    tools/check_words.py --count [ROOT]    count the findings in all texts, and per 1,000 words
    tools/check_words.py --show PATH ...   print the findings in these files or folders, checked or not

Prints one message per finding, as file:line. The exit code is 1 if the check has any finding; --count and --show only
inform. CONTRIBUTING.md, "How to write", has the rules behind the list.

Three kinds of text are read:

    text      a document, without "quotes" and code
    comments  the comments of a C++ file, without "quotes", `backquotes` and code
    messages  the string literals of a C++ file that contain several words: errors, logs and --help

A construction belongs in RULES only if correct English does not need it. check_words_test.py has sentences that must
pass.
"""

import re
import sys
from pathlib import Path

from check_includes import NOT_CODE

# The texts that must be free of findings: (path or folder, kind). Add a line when a folder has been edited.
CHECKED = [
    ("README.md", "text"),
    ("CONTRIBUTING.md", "text"),
    ("CHANGELOG.md", "text"),
    ("SECURITY.md", "text"),
    ("docs", "text"),
    ("examples", "text"),
    ("tests", "text"),
    ("include", "comments"),
    ("examples", "comments"),
]
# The texts that are counted as well. Every folder of `src` is counted separately.
COUNTED = [
    ("src", "messages"), ("apps", "messages"), ("examples", "messages"),
    ("src", "comments"), ("apps", "comments"), ("sim", "comments"), ("tests", "comments"),
    ("benchmarks", "comments"),
]

# Patterns see a text whose white space, ends of lines included, is single spaces. "¶" stands where a paragraph, a heading,
# an item of a list or a literal begins. START is the beginning of a sentence or of any of these; REST is part of a clause.
START = r"(?:^|(?<=[.:;!?|] )|(?<=¶)|(?<=¶ )|(?<=\*\* ))"
REST = r"[^.?!:;|¶]"
PARTICIPLE = r"(?:\w+ed|kept|known|left|lost|made|met|read|said|sent|shown|taken|told|written)"
COMPONENT = (r"(?:cache|client|cluster|coordinator|function|loader|observer|oracle|process|program|queue|run|scanner|"
             r"server|session|store|thread|transaction|worker)(?:e?s)?")
THING = (r"(?:address|cell|error|file|folder|integer|label|lock|mark|message|name|number|observer|option|record|request|"
         r"store|table|timestamp|transaction|value)(?:e?s)?")
AGENT = "name the component or the person: \"another client\", \"a reader\", \"no other thread\", \"the operator\""

# (name, pattern, what to write instead). Patterns match in either case.
RULES = [
    ("whoever", r"\b(?:whoever|whomever|whosoever)\b", AGENT),
    ("somebody", r"\b(?:somebody|nobody|anybody)\b", AGENT),
    ("who for a component", rf"\b{COMPONENT} who\b", "components are \"that\": \"a process that died\""),
    ("clause as subject", rf"{START}who (?!(?:may|can|should|must|is|does|uses|needs|owns)\b){REST}*[.;]", AGENT),
    ("clause as subject", rf"{START}what (?!(?:an?|the|each|every|to|it|they|we|you|he|if|else|follows)\b)(?!{REST}*\?)"
     rf"(?!{REST}*\b(?:when|if|while|where|that|how)\b)[^.?!:;|¶ ]+ {REST}{{1,80}}? (?:is|are) (?:not )?{PARTICIPLE}\b"
     rf"(?={REST}*[.;])",
     "start with the thing: \"Further requests fail with Unavailable\", not \"What exceeds it is refused\""),
    ("so many", r"\bfor so (?:many (?:seconds|minutes|hours|days|seeds|rounds|times)\b|long(?= in\b| at\b|[;:)]))",
     "give the number, or name it: \"for MINUTES minutes\", \"for that long\""),
    ("else for otherwise", rf"(?<=[,;:] )else\b(?! (?:branch|clause|if)\b)", "\"otherwise\""),
    ("else for otherwise", rf"{START}(?<![,;:] )else\b(?! (?:branch|clause|if)\b)", "\"otherwise\""),
    ("is none", r"\b(?:it|that|which|this|they) (?:is|are) none\b", "\"is not one\", \"is not a …\""),
    ("is no ...", rf"\b(?:it|that|which|they) (?:is|are) no (?:good |proper |valid |whole )?{THING}\b",
     "\"is not a …\": \"bytes that are not a valid record\""),
    ("of which", r"(?<=[a-z] )(?<!some )(?<!all )(?<!each )(?<!both )(?<!many )(?<!most )(?<!much )(?<!none )(?<!one )"
     r"(?<!two )(?<!any )(?<!half )(?<!part )(?<!because )(?<!out )(?<!either )(?<!neither )(?<!few )(?<!several )"
     r"of which\b", "\"whose\", or a second sentence"),
    ("tell of", r"\b(?:tells?|told) of\b", "\"describes\", \"reports\", \"is notified about\""),
    ("said so", r"\b(?:is|are) (?:said|told) (?:so|to be so)\b", "say what is reported: \"marked as invalid\""),
    ("begins so", r"\bbegins? so\b", "\"with this prefix\""),
    ("contraction", r"\b(?:can|won|don|doesn|isn|aren|wasn|weren|didn|hasn|haven|couldn|wouldn|shouldn|mustn)['’]t\b",
     "the full form: \"cannot\", \"does not\""),
    ("that cannot be", r"\bthat cannot be(?=[,.;])", "\"invalid\", \"out of range\""),
    ("at most", rf"\bhow (?:often|many|long|much|large)\b{REST}*\bat most\b",
     "\"The maximum number of …\", \"The maximum time for …\""),
    ("is there twice", r"\b(?:is|are) there twice\b", "\"duplicate …\""),
    ("taken for dead", r"\b(?:takes?|took|taken)(?: \w+){0,2} for dead\b", "\"declared dead\", \"after its lease expired\""),
    ("begins with nothing", r"\bwith nothing that is known\b", "\"unknown …\""),
    ("for ever", r"\bfor ever\b", "\"forever\", \"indefinitely\""),
    ("marketing", r"\b(?:blazing(?:ly)?|lightning[- ]fast|seamless(?:ly)?|effortless(?:ly)?|cutting-edge|world-class|"
     r"best-in-class|state-of-the-art|next-generation|enterprise-grade|battle-tested|supercharged?|revolutionary|"
     r"leverag(?:e[sd]?|ing))\b", "a measured figure, or nothing"),
]
# In comments of headers: a comment beside a field that goes on with the sentence of the field before.
FRAGMENT = re.compile(r"[^\s/].*//\s*(?:and|but|of these|of those|of which)\b", re.IGNORECASE)
FRAGMENT_MESSAGE = "the comment of a field is a sentence or phrase of its own, not the rest of the one before"
COMPILED = [(name, re.compile(pattern, re.IGNORECASE), instead) for name, pattern, instead in RULES]

CODE_BLOCK = re.compile(r"^```.*?^```|(?<=\n\n)(?: {4}[^\n]*\n)+|<!--.*?-->|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`')
COMMENT_CODE = re.compile(r"^ {5,}[^\n]*[;{}]\s*(?://[^\n]*)?$", re.MULTILINE)


def blanked(pattern, text, mark=" "):
    """The text with marks instead of what matches; every character keeps its position."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", mark, match.group()), text)


def with_breaks(text):
    """The text with ¶ where a paragraph, a heading or an item of a list begins; every character keeps its position."""
    text = re.sub(r"\n(?=[ \t]*\n)", "¶", text)
    return re.sub(r"^[ \t]*(?:[-*+]|\d+\.|#+|>)(?=\s)", lambda match: "¶" * len(match.group()), text, flags=re.MULTILINE)


def with_single_spaces(text):
    """The text with single spaces instead of white space, and the position that each character of it had."""
    shown = [i for i, c in enumerate(text) if not c.isspace() or i == 0 or not text[i - 1].isspace()]
    return "".join(" " if text[i].isspace() else text[i] for i in shown), shown


def pieces_of_document(text):
    """The prose of a document, as (position, text)."""
    return [(0, with_breaks(blanked(QUOTED, blanked(CODE_BLOCK, text), "_")))]


def pieces_of_comments(text):
    """The comments of a C++ file, those of adjacent lines together, as (position, text)."""
    pieces, end = [], None
    for match in NOT_CODE.finditer(text):
        if not match.group().startswith(("//", "/*")):
            continue
        prose = re.sub(r"^//+|^/\*+|\*/$|^[ \t]*\*(?=\s)", lambda m: " " * len(m.group()), match.group(), flags=re.M)
        if end is not None and re.fullmatch(r"[ \t]*\n?[ \t]*", text[end:match.start()]):
            start, before = pieces.pop()
            prose = before + text[end:match.start()] + prose
        else:
            start = match.start()
        pieces.append((start, prose))
        end = match.end()
    return [(start, with_breaks(blanked(QUOTED, blanked(COMMENT_CODE, prose), "_")))
            for start, prose in pieces]


def pieces_of_messages(text):
    """The literals of a C++ file that have at least three words; adjacent ones are one, as for the compiler."""
    pieces, end = [], None
    for match in NOT_CODE.finditer(text):
        literal = match.group()
        if literal.startswith("//") or literal.startswith("/*"):
            continue
        if not literal.startswith(('"', 'R"')):
            end = None
            continue
        if end is not None and not text[end:match.start()].strip():
            start, before = pieces.pop()
            pieces.append((start, before[:-1] + " " * (match.start() - end + 2) + literal[1:]))
        else:
            pieces.append((match.start(), literal))
        end = match.end()
    prose = [(start, re.sub(r"\\n", "¶¶", literal)) for start, literal in pieces]
    return [(start, "¶" + literal[1:]) for start, literal in prose if len(re.findall(r"[A-Za-z]{2,}", literal)) >= 3]


PIECES = {"text": pieces_of_document, "comments": pieces_of_comments, "messages": pieces_of_messages}


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_text(text, kind):
    """All findings in the text of a file, as (line, message), and the number of its words."""
    findings, words = set(), 0
    for start, piece in PIECES[kind](text):
        prose, positions = with_single_spaces(piece)
        words += len(re.findall(r"[A-Za-z][\w'’-]*", prose))
        for name, pattern, instead in COMPILED:
            for match in pattern.finditer(prose):
                found = match.group() if len(match.group()) <= 60 else match.group()[:57] + "..."
                line = line_of(text, start + positions[match.start()])
                findings.add((line, f'"{found}" ({name}): write {instead}'))
    if kind == "comments":
        for number, line in enumerate(text.split("\n"), 1):
            if FRAGMENT.search(line) and not line.lstrip().startswith("//"):
                findings.add((number, f"comment that continues the one above: {FRAGMENT_MESSAGE}"))
    return sorted(findings), words


def files_of(root, path, kind):
    """The files of a scope."""
    whole = root / path
    if whole.is_file():
        return [whole]
    suffixes = {"text": (".md",), "comments": (".h", ".cc"), "messages": (".h", ".cc")}[kind]
    return sorted(file for file in whole.rglob("*")
                  if file.suffix in suffixes and not {"node_modules", "build"} & set(file.parts)
                  and not (kind == "messages" and file.name.endswith("_test.cc")))


def check_scope(root, path, kind):
    """All findings in a file or folder, as lines of text, and the number of words and of files."""
    lines, words, files = [], 0, files_of(root, path, kind)
    for file in files:
        findings, more = check_text(file.read_text(encoding="utf-8", errors="replace"), kind)
        words += more
        lines += [f"{file.relative_to(root).as_posix()}:{line}: {message}" for line, message in findings]
    return lines, words, len(files)


def count(root):
    """Prints the number of findings in each text."""
    print(f"{'findings':>8} {'words':>8} {'per 1,000':>9}  text")
    total_found, total_words = 0, 0
    for path, kind in dict.fromkeys(CHECKED + COUNTED):
        folders = [path]
        if path == "src":
            folders = sorted(f"src/{folder.name}" for folder in (root / "src").glob("*") if folder.is_dir())
        for folder in folders:
            lines, words, files = check_scope(root, folder, kind)
            if files:
                print(f"{len(lines):8} {words:8} {1000 * len(lines) / max(words, 1):9.1f}  {folder} ({kind})")
                total_found, total_words = total_found + len(lines), total_words + words
    print(f"{total_found:8} {total_words:8} {1000 * total_found / max(total_words, 1):9.1f}  in all")
    return 0


def show(root, paths):
    for path in paths:
        for kind in PIECES:
            for line in check_scope(root, path, kind)[0]:
                print(f"{line} [{kind}]")
    return 0


def main(root):
    lines, files = [], 0
    for path, kind in CHECKED:
        found, _, number = check_scope(root, path, kind)
        lines += found
        files += number
        if number == 0:
            lines.append(f"{root}: {path} has no {kind}; nothing was checked there")
    names = ", ".join(f"{path} ({kind})" for path, kind in CHECKED)
    print("\n".join(lines) if lines else f"words: {files} files are clean: {names}")
    return 1 if lines else 0


if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parent.parent
    if sys.argv[1:2] == ["--show"]:
        paths = [Path(path).resolve() for path in sys.argv[2:]]
        for path in paths:
            if not path.exists() or not path.is_relative_to(ROOT):
                sys.exit(f"check_words: {path}: no such file or folder of the project")
        sys.exit(show(ROOT, [path.relative_to(ROOT).as_posix() for path in paths]))
    counted = sys.argv[1:2] == ["--count"]
    rest = sys.argv[2:] if counted else sys.argv[1:]
    sys.exit((count if counted else main)(Path(rest[0] if rest else ROOT)))
