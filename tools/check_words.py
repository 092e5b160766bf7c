#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that texts for readers avoid a short list of constructions, and names the replacement for each.

    tools/check_words.py [ROOT]            check the texts of CHECKED below
    tools/check_words.py --count [ROOT]    count the findings in all texts, and per 1,000 words
    tools/check_words.py --show PATH ...   print the findings in these files or folders, checked or not

Prints one message per finding, as file:line. The exit code is 1 if the check has any finding; --count and --show only
inform. CONTRIBUTING.md, "How to write", has the rules behind the list.

These kinds of text are read, all without "quotes", `backquotes` and code:

    text       documents
    comments   the comments of C++, JavaScript, Go and protocol buffers
    messages   the string literals of two or more words in C++ and JavaScript, except in tests: errors, logs, --help
    scripts    the comments and docstrings of Python, and the comments of shell scripts and CMake; --help prints some
    histories  the comments of scripts of transactions (tests/histories)
    mutants    the first line of a mutant, which says what is wrong

A construction belongs in RULES only if correct English does not need it. check_words_test.py has sentences that must
pass.
"""

import io
import re
import sys
import tokenize
from pathlib import Path

from check_includes import NOT_CODE

# The texts that must be free of findings: (path or folder, kind). Add a line when a folder has been edited.
CHECKED = [
    *((path, "text") for path in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs", "examples", "tests")),
    *((path, "comments") for path in ("include", "examples", "src", "apps", "benchmarks", "sim", "tests")),
    *((path, "messages") for path in ("src", "apps", "benchmarks", "examples", "sim", "tests")),
    *((path, "scripts") for path in ("bench", "reference", "run", "setup", "test", "CMakeLists.txt", ".ci", "cmake", "tools",
                                     "src", "apps", "examples", "benchmarks", "sim", "tests")),
    ("tests/histories", "histories"),
    ("sim/mutants", "mutants"),
    ("tests/oracle/mutants", "mutants"),
    ("tests/store/mutants", "mutants"),
]
# The texts that are counted as well, except those in CHECKED. The folders of `src` and `tests` are counted separately.
COUNTED = []
# The names of the files of each kind. A script without a suffix begins with "#!".
SUFFIXES = {
    "text": (".md",),
    "comments": (".h", ".cc", ".proto", ".js", ".go"),
    "messages": (".h", ".cc", ".js"),
    "scripts": (".py", ".sh", ".cmake", "CMakeLists.txt"),
    "histories": (".txt",),
    "mutants": (".mutant",),
}

# Folders that are not read, at any depth.
OTHERS = {"node_modules", "build", "corpus", "__pycache__"}

# Patterns see a text whose white space, ends of lines included, is single spaces. "¶" stands where a paragraph, a heading,
# an item of a list or a literal begins. START is the beginning of a sentence or of any of these; REST is part of a clause.
START = r"(?:^|(?<=^ )|(?<=[.:;!?|] )|(?<=¶)|(?<=¶ )|(?<=\*\* ))"
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
    ("clause as subject", rf"{START}who (?!(?:may|can|should|must|is|does|uses|needs|owns)\b)(?!\w+,)"
     rf"(?!\w+ what\b)(?!{REST}*\b(?:which|since when)\b){REST}*[.;]", AGENT),
    ("clause as subject", rf"{START}what (?!(?:an?|the|each|every|to|it|they|we|you|he|if|else|follows)\b)(?!{REST}*\?)"
     rf"(?!{REST}*\b(?:when|if|while|where|that|how)\b)[^.?!:;|¶ ]+ {REST}{{1,80}}? (?:is|are) (?:not )?{PARTICIPLE}\b"
     rf"(?! of[.;,])(?={REST}*[.;])",
     "start with the thing: \"Further requests fail with Unavailable\", not \"What exceeds it is refused\""),
    ("so many", r"\bfor so (?:many (?:seconds|minutes|hours|days|seeds|rounds|times)\b|long(?= in\b| at\b|[;:)]))",
     "give the number, or name it: \"for MINUTES minutes\", \"for that long\""),
    ("else for otherwise", rf"(?<=[,;:] )else\b(?! (?:branch|clause|if)\b)", "\"otherwise\""),
    ("else for otherwise", rf"{START}(?<![,;:] )else\b(?! (?:branch|clause|if)\b)", "\"otherwise\""),
    ("is none", r"\b(?:it|that|which|this|they) (?:is|are) none\b", "\"is not one\", \"is not a …\""),
    ("is no ...", rf"\b(?:it|that|which|they) (?:is|are) no (?:good |proper |valid |whole )?{THING}\b",
     "\"is not a …\": \"bytes that are not a valid record\""),
    ("of which", r"(?<=[a-z] )(?<!some )(?<!all )(?<!each )(?<!both )(?<!many )(?<!most )(?<!much )(?<!none )(?<!one )"
     r"(?<!list )(?<!table )(?<!record )(?<!regardless )(?<!question )(?<!matter )"
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
# In comments: a comment beside a field that continues the sentence of the field before.
FRAGMENT = re.compile(r"[^\s/].*//\s*(?:and|but|of these|of those|of which)\b", re.IGNORECASE)
FRAGMENT_MESSAGE = "the comment of a field is a sentence or phrase of its own, not the rest of the one before"
# In documents: the enumerator of a status code instead of its name, unless as a bad example.
STATUS_CODE = re.compile(r"(?<!, not `)\bk(Aborted|AlreadyExists|Cancelled|DataLoss|DeadlineExceeded|FailedPrecondition|Internal|"
                         r"InvalidArgument|NotFound|OutOfRange|PermissionDenied|ResourceExhausted|Unauthenticated|Unavailable|"
                         r"Unimplemented)\b")
COMPILED = [(name, re.compile(pattern, re.IGNORECASE), instead) for name, pattern, instead in RULES]

CODE_BLOCK = re.compile(r"^ *```.*?^ *```|(?<=\n\n)(?: {4}[^\n]*\n)+|<!--.*?-->|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`')
QUOTED_IN_LITERAL = re.compile(r'(?<!^)`[^`\n]*`(?!$)|\\"[^"\\\n]*\\"|\$\{[^}]*\}')
HASH_COMMENT = re.compile(r"(?<!\S)#(?!!)[^\n]*")
LICENSE = re.compile(r"^(?://|#) SPDX-License-Identifier:[^\n]*", re.MULTILINE)
# Comments and literals of languages in which they are not those of C++.
OF_JAVASCRIPT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL)
TOKENS = {".js": OF_JAVASCRIPT, ".go": OF_JAVASCRIPT}
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


def joined(text, pieces):
    """Pieces of a text, as (position, prose), of which those with nothing but one end of line in between are one."""
    whole = []
    for start, prose in pieces:
        end = whole[-1][0] + len(whole[-1][1]) if whole else 0
        if whole and re.fullmatch(r"[ \t]*\n?[ \t]*", text[end:start]):
            before, more = whole.pop()
            start, prose = before, more + text[end:start] + prose
        whole.append((start, prose))
    return whole


def pieces_of_document(text, _suffix):
    """The prose of a document, as (position, text)."""
    return [(0, with_breaks(blanked(QUOTED, blanked(CODE_BLOCK, text), "_")))]


def pieces_of_comments(text, suffix):
    """The comments of a source, those of adjacent lines together, as (position, text)."""
    pieces = []
    for match in TOKENS.get(suffix, NOT_CODE).finditer(text):
        if match.group().startswith(("//", "/*")):
            prose = re.sub(r"^//+|^/\*+|\*/$|^[ \t]*\*(?=\s)", lambda m: " " * len(m.group()), match.group(), flags=re.M)
            pieces.append((match.start(), prose))
    return [(start, with_breaks(blanked(QUOTED, blanked(COMMENT_CODE, prose), "_")))
            for start, prose in joined(text, pieces)]


def pieces_of_messages(text, suffix):
    """The literals of a source that have at least two words; adjacent ones are one, as for the compiler of C++."""
    pieces, end = [], None
    for match in TOKENS.get(suffix, NOT_CODE).finditer(text):
        literal = match.group()
        if literal.startswith(("//", "/*")):
            continue
        if not literal.startswith(('"', 'R"') if suffix not in TOKENS else ('"', "'", "`")):
            end = None
            continue
        if end is not None and not text[end:match.start()].strip():
            start, before = pieces.pop()
            pieces.append((start, before[:-1] + " " * (match.start() - end + 2) + literal[1:]))
        else:
            pieces.append((match.start(), literal))
        end = match.end()
    prose = [(start, re.sub(r"\\n", "¶¶", blanked(QUOTED_IN_LITERAL, literal, "_"))) for start, literal in pieces]
    return [(start, "¶" + literal[1:]) for start, literal in prose if len(re.findall(r"[A-Za-z]{2,}", literal)) >= 2]


def pieces_of_python(text):
    """The comments and docstrings of a program in Python."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pieces, before = [], tokenize.NEWLINE
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type != tokenize.NL]
    for token, after in zip(tokens, tokens[1:]):
        whole = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT) and after.type == tokenize.NEWLINE
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and whole):
            prose = re.sub(r'^#!?|^[rR]?"""|"""$', lambda m: " " * len(m.group()), token.string)
            pieces.append((starts[token.start[0] - 1] + token.start[1], prose))
        if token.type != tokenize.COMMENT:
            before = token.type
    return pieces


def pieces_of_scripts(text, suffix):
    """The comments of a script, and its docstrings if it is a program in Python."""
    if suffix == ".py":
        pieces = pieces_of_python(text)
    else:
        pieces = [(match.start(), " " + match.group()[1:]) for match in HASH_COMMENT.finditer(text)]
    return [(start, with_breaks(blanked(QUOTED, prose, "_"))) for start, prose in joined(text, pieces)]


def pieces_of_histories(text, _suffix):
    """The comments of a script of transactions."""
    pieces = [(match.start(), " " + match.group()[1:]) for match in HASH_COMMENT.finditer(text)]
    return [(start, with_breaks(blanked(QUOTED, prose, "_"))) for start, prose in joined(text, pieces)]


def pieces_of_mutants(text, _suffix):
    """What a mutant says is wrong."""
    return [(0, blanked(QUOTED, text.split("\n", 1)[0], "_"))]


PIECES = {"text": pieces_of_document, "comments": pieces_of_comments, "messages": pieces_of_messages,
          "scripts": pieces_of_scripts, "histories": pieces_of_histories, "mutants": pieces_of_mutants}


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_text(text, kind, suffix=".cc"):
    """All findings in the text of a file, as (line, message), and the number of its words."""
    findings, words = set(), 0
    text = blanked(LICENSE, text)
    for start, piece in PIECES[kind](text, suffix):
        prose, positions = with_single_spaces(piece)
        words += len(re.findall(r"[A-Za-z][\w'’-]*", prose))
        for name, pattern, instead in COMPILED:
            for match in pattern.finditer(prose):
                found = match.group() if len(match.group()) <= 60 else match.group()[:57] + "..."
                line = line_of(text, start + positions[match.start()])
                findings.add((line, f'"{found}" ({name}): write {instead}'))
    if kind == "text":
        for match in STATUS_CODE.finditer(blanked(CODE_BLOCK, text)):
            findings.add((line_of(text, match.start()), f'"{match.group()}" (status code): write "{match.group(1)}"'))
    if kind == "comments":
        for number, line in enumerate(text.split("\n"), 1):
            if FRAGMENT.search(line) and not line.lstrip().startswith("//"):
                findings.add((number, f"comment that continues the one above: {FRAGMENT_MESSAGE}"))
    return sorted(findings), words


def is_of_kind(file, kind):
    """Whether a file has texts of this kind."""
    if kind == "scripts" and not file.suffix:
        with open(file, "rb") as content:
            return content.read(2) == b"#!"
    if kind == "histories" and file.name == "CMakeLists.txt":
        return False
    return file.name.endswith(SUFFIXES[kind]) and not (kind == "messages" and file.name.endswith("_test.cc"))


def files_of(root, path, kind):
    """The files of a scope."""
    whole = root / path
    files = [whole] if whole.is_file() else sorted(file for file in whole.rglob("*") if file.is_file()
                                                   and not OTHERS & set(file.relative_to(root).parts))
    return [file for file in files if is_of_kind(file, kind)]


def check_scope(root, path, kind):
    """All findings in a file or folder, as lines of text, and the number of words and of files."""
    lines, words, files = [], 0, files_of(root, path, kind)
    for file in files:
        findings, more = check_text(file.read_text(encoding="utf-8", errors="replace"), kind, file.suffix)
        words += more
        lines += [f"{file.relative_to(root).as_posix()}:{line}: {message}" for line, message in findings]
    return lines, words, len(files)


def count(root):
    """Prints the number of findings in each text."""
    print(f"{'findings':>8} {'words':>8} {'per 1,000':>9}  text")
    total_found, total_words = 0, 0
    scopes = []
    for path, kind in CHECKED + COUNTED:
        whole = path not in ("src", "tests") or kind not in ("comments", "messages")
        scopes += [(path, kind)] if whole else sorted(
            (folder.relative_to(root).as_posix(), kind) for folder in (root / path).glob("*") if folder.is_dir())
    for folder, kind in dict.fromkeys(scopes):
        lines, words, files = check_scope(root, folder, kind)
        if files:
            print(f"{len(lines):8} {words:8} {1000 * len(lines) / max(words, 1):9.1f}  {folder} ({kind})")
            total_found, total_words = total_found + len(lines), total_words + words
    print(f"{total_found:8} {total_words:8} {1000 * total_found / max(total_words, 1):9.1f}  in all")
    return 0


def show(root, paths):
    """Prints the findings in files or folders."""
    for path in paths:
        whole = Path(path).resolve()
        if not whole.exists() or not whole.is_relative_to(root):
            return wrong(f"{path}: no such file or folder of the project")
        kinds = [kind for kind in PIECES if kind != "histories" or "histories" in whole.relative_to(root).parts]
        for kind in kinds:
            for line in check_scope(root, whole.relative_to(root).as_posix(), kind)[0]:
                print(f"{line} [{kind}]")
    return 0


def main(root):
    lines, files = [], dict.fromkeys(PIECES, 0)
    for path, kind in CHECKED:
        found, _, number = check_scope(root, path, kind)
        lines += found
        files[kind] += number
        if number == 0:
            lines.append(f"{root}: {path} has no {kind}; nothing was checked there")
    clean = ", ".join(f"{kind} of {number} files" for kind, number in files.items() if number)
    print("\n".join(lines) if lines else f"words: clean: {clean}")
    return 1 if lines else 0


def wrong(message):
    print(f"check_words: {message}; see tools/check_words.py --help", file=sys.stderr)
    return 2


def run(arguments):
    """Runs a command line; returns the exit code."""
    root = Path(__file__).resolve().parent.parent
    option = arguments[0] if arguments and arguments[0].startswith("-") else ""
    rest = arguments[1:] if option else arguments
    if option in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if option == "--show" and rest:
        return show(root, rest)
    if option not in ("", "--count"):
        return wrong(f"unknown option {option}" if option != "--show" else "--show needs a file or folder")
    if len(rest) > 1 or not Path(*rest[:1]).is_dir():
        return wrong(f"{' '.join(rest)}: not a folder")
    return (count if option else main)(Path(rest[0]) if rest else root)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
