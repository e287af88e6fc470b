"""Bytes in the notation of programs and source code: strings, lists of numbers, a Node buffer, Netty's box."""

from __future__ import annotations

import ast
import re
from urllib.parse import unquote_to_bytes

from wirekit.cli.input.cutting import shows
from wirekit.cli.input.text import ANY_COMMENT, COMMENT, Input, blank, wrong, wrong_in_line

_ESCAPE = (
    r"\\(?:[\\'\"abefnrtv#]|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]{1,2}\}|u00[0-7][0-9a-fA-F]"
    r"|[0-3][0-7]{2}|[0-7]{1,2}(?![0-7]))"
)
_ESCAPES = re.compile(_ESCAPE)
_NAMED_ESCAPES = {r"\e": r"\x1b", r"\#": "#"}  # of Ruby
_BRACED = re.compile(r"\\(?:x\{|u00)([0-9a-fA-F]{1,2})\}?")  # of Perl, JSON
_OCTAL = re.compile(r"\\[0-7]+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_LITERAL = re.compile(rf"""(?:b|\$)?(?:'(?:[^'\\\n\0]|{_ESCAPE})*+'|"(?:[^"\\\n\0]|{_ESCAPE})*+")""")
_SPACE = rf"(?:\s|\\\n|{ANY_COMMENT})*+"
_JOINT = re.compile(rf"{_SPACE}(?P<operator>[,+&]|<>|\.\.?(?!\.))?{_SPACE}")
_QUOTE = re.compile(r"(?:b|\$)?['\"]")
_ESCAPED = re.compile(r"\$?['\"]\\(?:x[0-9a-fA-F{]|u00|[0-7]{3}|0\\)")  # the beginning of a string
_EMPTY_JOIN = re.compile(r"""b?(?:''|"")(?=\.join\()""")
_BARE_DIGITS = re.compile(
    r"(?:['\"$]|\\x[0-9a-fA-F]{2})*+[0-9a-fA-F](?:['\"$]|\\x[0-9a-fA-F]{2}|[0-9a-fA-F])*+"
)  # hex digits, of which some are escaped
# Text before a literal: a constructor, and before that the name of a variable or the words of a log.
_BEFORE_LITERAL = re.compile(r"\s*+(?:[^\n'\"]{0,200}[\s:=(,&])?(?:(?:bytearray|bytes)\()?[(\[]*\s*+")
_SYSTEM_CALL = re.compile(r"\b(?:(?P<written>write|send|sendto)|read|recv|recvfrom)\(")
_CUT_STRING = re.compile(r"""['"](?=\.\.\.)""")
_AFTER_LITERAL = re.compile(
    r"""(?:(?:force_encoding\(["'][\w-]{1,20}|encode\(["'](?:latin|iso)[\w-]{1,20})["']\))?[^\n'"]{0,200}[\s)\]},;]*+""",
    re.IGNORECASE,
)

_CONTROLS = "NUL|SOH|STX|ETX|EOT|ENQ|ACK|a|b|t|n|v|f|r|SO|SI|DLE|DC1|DC2|DC3|DC4|NAK|SYN|ETB|CAN|EM|SUB|ESC|FS|GS|RS|US"
"""The names of the characters from 0 on in a string that Haskell shows."""
_HASKELL_ESCAPE = re.compile(rf"\\(?:(?P<name>SOH|{_CONTROLS}|DEL)|(?P<number>\d{{1,3}})|&|(?P<itself>[\"\\]))")
_HASKELL = re.compile(rf'"(?:[^"\\\n]|\\(?:SOH|{_CONTROLS}|DEL|\d{{1,3}}(?!\d)|[&"\\]))*+"')
_HASKELL_NAME = re.compile(r"\\[A-Z][A-Z0-9]")

LEAST_LABELLED = 8
"""The least number of items in a list after other words; a shorter list may be something else."""
_MOST_BEFORE_LIST = 1000  # characters before the bracket of a list: a declaration, a constructor
# Parts of numbers that only name the type of a byte: (byte) 1, 1u8, 1uy (F#), 1'u8 (Nim), 1.toByte(), b'a' (Rust)
_CAST = re.compile(
    r"#v?u8(?=\()|(?<=\()bytevector\b|"  # of Scheme
    r"\(\s*(?:unsigned char|char|byte|u?int8_t)\s*\)|(?<!')\bb(?=')"
    r"|(?<=[\da-f])(?:[_']?[ui]8\b|uy\b|\.toByte\b(?:\(\))?)|(?<=\[)\||\|(?=\])",
    re.IGNORECASE,
)
# Suffixes and calls that take all of a list: [..] and .to_vec() (Rust), [:] (Go), .buffer (JavaScript), .pack("C*")
# (Ruby); calls without arguments.
_ALL = re.compile(
    r"""\[(?:\.\.|:)\]|\(\)|(?<=[\])}])(?:\.[a-zA-Z_]\w*+(?:\((?:["']C\*["'])?\))?){1,8}+(?=[\s;,)]*+\Z)"""
)
# Text before a list, with its bracket: a declaration, a constructor, the names of JSON.
_BEFORE_LIST = re.compile(
    r"(?:[A-Za-z_][\w-]*+|\[\]|\[\w++(?:; ?\d++|\[\])?\](?=\s*[={(]|\w)|\(\d*+\)(?=\s*\[)|[\s.:*&@=<>,\"'!{(\[])*+"
)  # with the bracket
# Text before a list that a log or a program names, with the bracket.
_LABEL = re.compile(r"\s*+[^\n]{0,200}?[\w)\]] ?[:=] ?\[")
_WORDS = re.compile(r"[^\n\[\](){}]{0,200}\s*+")
_TAIL = re.compile(r"[\]})>\s;,]*+")
_ARGUMENT = re.compile(r"[\]})>\s]*+,\s*+&?[a-zA-Z_][\w.]*+\s*+\)[\s;]*+")  # another one of a call
_HEX_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,2}|[0-9a-fA-F]{2}")
_PREFIXED = re.compile(r"0[xX][0-9a-fA-F]{1,2}|0[bB][01]{8}")
_CHARACTER = r"'(?:\\.[0-9a-fA-F]{0,2}|[^'\\\n])'"
_ITEM = re.compile(rf"(?P<item>{_CHARACTER}|[^\s,;]+)")
_DECIMAL = re.compile(r"(?P<sign>-?)(?P<digits>0|[1-9]\d{0,2})[uU]?")
_BARE = re.compile(r"\s*+(?:-?(?:0|[1-9]\d{0,2})(?:\s*+,\s*+|\s++|\Z)){2,}+")
# As ``_BARE``, also with other items, in some lines of an array whose characters or casts tell that they are bytes.
_BARE_TYPED = re.compile(
    rf"\s*+(?:(?:-?(?:0|[1-9]\d{{0,2}})|{_PREFIXED.pattern}|{_CHARACTER})(?:\s*+[,;]\s*+|\s++|\Z)){{2,}}+"
)
_NUMBER = re.compile(r"-?\d\w*+\Z|'")
_INDEX = re.compile(r'"(\d++)"\s*+:')  # of JavaScript's typed arrays in JSON
_CUT = re.compile(r"\.\.\.|…")

_URL = re.compile(r"\s*%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2}|[\w.~!*'()/-])*\s*", re.ASCII)
_NAMED = re.compile(
    r"(?<![\w:.-])(?:(?:0x)?[0-9a-fA-F]{16,}|(?:[0-9a-fA-F]{2}[ :-]){7,}[0-9a-fA-F]{2})(?![\w:.-])", re.ASCII
)  # not an address of hardware or an identifier in several groups

_BOX = re.compile(r"[ \t]*\|(?P<offset>[0-9a-fA-F]{8})\|(?P<bytes>(?: [0-9a-fA-F]{2}){1,16}) *\|(?P<text>.{1,16})\|")
_BOX_FRAME = re.compile(r"[ \t]*(?:\+[-+]+\+|\|(?:  ?[0-9a-f]){16} \|)[ \t]*")
_BOX_HEAD = re.compile(
    r"(?:\[id: (?P<channel>[^,\]\s]{1,200})[^\]]{0,200}\] {0,200})?"
    r"\b(?P<direction>READ|RECEIVED|WRITE|SENT)(?:\([^)]{0,200}\))?: \d+B\s*$"
)


def read_literal(text: str, *, least: int = LEAST_LABELLED) -> Input | None:
    r"""The bytes of ``b'...'`` as Python prints it, also in ``bytearray(...)`` or in pieces; None for other text.

    Those of a list are dumps of their own, unless they are joined. The ``b`` may be missing (C, Go, Python 2, Ruby), or
    be ``$`` (bash), if the first byte is escaped as ``\x00``, ``\000`` or ``\u0000``; other characters beyond ASCII are
    UTF-8 then. In ``b"\0\09"``, as Rust prints bytes, ``\0`` is a byte of its own. Words may follow ``least`` bytes.

    >>> read_literal(r"bytearray(b'\x00\x05hello')")
    Input(data=b'\x00\x05hello', form='hex', note=None)

    Raises:
        Misuse: for a string that is cut.
    """
    joined = _EMPTY_JOIN.search(text, 0, _MOST_BEFORE_LIST)
    first = _QUOTE.search(text, joined.end() if joined else 0)
    if first is None or not _BEFORE_LITERAL.fullmatch(blank(_EMPTY_JOIN, text[: first.start()])):
        return None
    literals: list[str] = []
    operators: list[str | None] = []
    at = first.start()
    while literal := _LITERAL.match(text, at):
        literals.append(literal[0])
        joint = _JOINT.match(text, literal.end())
        at = joint.end() if joint else literal.end()
        operators.append(joint and joint["operator"])
    prefixed = first[0][0] == "b"
    if not literals or any((literal[0] == "b") != prefixed for literal in literals):
        return None
    escapes = [each for literal in literals for each in _ESCAPES.findall(literal)]
    foreign = not all(map(str.isascii, literals))
    if prefixed:
        if foreign or any(each[1] == "u" for each in escapes):
            return None
    elif not _ESCAPED.match(literals[0]) or _BARE_DIGITS.fullmatch("".join(literals)):
        return None
    if text.startswith("...", at):
        raise wrong(text, at, "the string is cut; print all of it")
    singles = all(len(_ESCAPES.sub("?", each.lstrip("b$"))) == len("'?'") for each in literals)
    if singles and text[: first.start()].rstrip().endswith(","):
        return None  # characters in a list of numbers
    octal = [each for each in escapes if _OCTAL.match(each)]
    rust = literals[0].startswith('b"') and r"\0" in octal and all(each[1] == "0" for each in octal)
    pieces = tuple(_bytes(literal, rust=rust) for literal in literals)
    data = b"".join(pieces)
    after = text[at:]
    alone = len(literals) == 1 or operators[-1] != ","
    if after.strip(" \t\n)]},;") and not (alone and len(data) >= least and _AFTER_LITERAL.fullmatch(after)):
        return None
    note = None
    if rust and any(len(each) > len(r"\0") for each in octal):
        note = r"\0 before digits was read as a zero byte, as Rust prints it"
    elif not prefixed and (short := next((each for each in octal if len(each) == len(r"\12")), None)):
        note = f"{short} and similar escapes were read as octal numbers"
    elif foreign:
        note = "characters beyond ASCII were read as UTF-8"
    dumps = pieces if set(operators[:-1]) == {","} and not joined else ()
    return Input(data, "hex", note, dumps)


def read_haskell(text: str) -> Input | None:
    r"""The bytes of a string as Haskell shows it, if one of its characters has a name; None for other text.

    >>> read_haskell(r'"\NUL\NUL\SOH\200\&7"').data.hex(" ")
    '00 00 01 c8 37'
    """
    string = _HASKELL.match(text, max(text.find('"'), 0))
    if string is None or not _HASKELL_NAME.search(string[0]):
        return None
    before, after = text[: string.start()], text[string.end() :]
    if not _BEFORE_LITERAL.fullmatch(before) or not _AFTER_LITERAL.fullmatch(after):
        return None

    def character(match: re.Match[str]) -> str:
        name = match["name"]
        if name:
            return "\x7f" if name == "DEL" else chr(_CONTROLS.split("|").index(name))
        return chr(int(match["number"])) if match["number"] else match["itself"] or ""

    shown = _HASKELL_ESCAPE.sub(character, string[0][1:-1])
    return Input(shown.encode("latin-1"), "hex") if max(map(ord, shown)) < 0x100 else None


def read_logged(text: str) -> Input | None:
    """The strings in the lines of a log or of strace, one in each, as dumps; None for other text.

    The system calls that strace names tell the sides.

    Raises:
        Misuse: for a string that is cut.
    """
    lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    if len(lines) < 2 or not all(map(_QUOTE.search, lines.values())):
        return None
    dumps: list[bytes] = []
    for number, line in lines.items():
        if dumps and (cut := _CUT_STRING.search(line)):
            raise wrong_in_line(number, line, cut.end(), "the string is cut; print all of it")
        string = read_literal(line, least=1)
        if string is None or string.dumps:
            return None
        dumps.append(string.data)
    calls = [match["written"] is not None for line in lines.values() if (match := _SYSTEM_CALL.search(line))]
    sides = tuple(int(written != calls[0]) for written in calls) if len(calls) == len(lines) else ()
    return Input(b"".join(dumps), "hex", "the text around the strings was skipped", tuple(dumps), sides)


def _bytes(literal: str, *, rust: bool) -> bytes:
    """The bytes of a string with escapes of Python, Ruby, Perl, JSON or, on demand, Rust."""

    def in_python(match: re.Match[str]) -> str:
        escape = match[0]
        if braced := _BRACED.fullmatch(escape):
            return rf"\x{braced[1]:0>2}"
        return rf"\x00{escape[2:]}" if rust and _OCTAL.match(escape) else _NAMED_ESCAPES.get(escape, escape)

    def in_utf8(match: re.Match[str]) -> str:
        return "".join(rf"\x{byte:02x}" for byte in match[0].encode())

    escaped = _BEYOND_ASCII.sub(in_utf8, _ESCAPES.sub(in_python, literal.lstrip("b$")))
    data: bytes = ast.literal_eval(f"b{escaped}")
    return data


def read_numbers(text: str) -> Input | None:
    """A list of numbers in brackets, of decimal numbers without, or a Node ``<Buffer ...>``; None for other text.

    ``[0, 0, 23, -54]`` (Java), ``[0 0 23 202]`` (Go), ``{"type":"Buffer","data":[0,23]}`` and ``{"0":0,"1":23}``
    (JSON), ``{ 0, 0x17, 'a' }`` (C), ``[|0uy; 23uy|]`` (F#). Numbers in brackets are decimal unless letters, a prefix
    or leading zeros say that they are hexadecimal. Characters and casts tell that lines are part of an array.

    >>> read_numbers("[0, 0, 23, -54]").data.hex(" ")
    '00 00 17 ca'

    Raises:
        Misuse: for an incomplete list, or numbers that are not bytes.
    """
    uncommented = blank(COMMENT, text)
    code = blank(_CAST, uncommented)
    typed = code != uncommented or "'" in code
    text = blank(_ALL, code)
    indexes = _INDEX.findall(text)
    if indexes and indexes == [str(number) for number in range(len(indexes))]:
        text = blank(_INDEX, text)
    begin, end, bracket = _body(text)
    if not bracket and not (_BARE_TYPED if typed else _BARE).fullmatch(text):
        return None
    items = [(match.start("item"), match["item"]) for match in _ITEM.finditer(text, begin, end)]
    if bracket == "<" and items and items[0][1] == "Buffer":
        return _hex_list(text, items[1:])
    if bracket == "<":
        return None
    if not items or not all(
        _NUMBER.match(item) or _CUT.match(item) or _HEX_NUMBER.fullmatch(item) for _, item in items
    ):
        return None
    plain = _BEFORE_LIST.fullmatch(code, 0, begin) and _TAIL.fullmatch(code, end)
    # The section of a manual, an argument: gpg-agent(1)
    numbered = bracket == "(" and len(items) == 1 and items[0][1].isdecimal() and code[begin - 2 : begin - 1].isalpha()
    if begin and (numbered or not plain) and len(items) < LEAST_LABELLED:
        return None
    if _is_hex(items):
        return _hex_list(text, items)
    prefixed = [bool(_PREFIXED.fullmatch(item)) for _, item in items]
    if any(prefixed) and all(each or item[0] == "'" for each, (_, item) in zip(prefixed, items, strict=True)):
        return Input(bytes(_number(text, at, item, signed=False) for at, item in items), "hex")
    decimals = [match for _, item in items if (match := _DECIMAL.fullmatch(item))]
    plain_text = not bracket and not typed
    if not decimals or (plain_text and not any(item[0] == "-" or len(item) % 2 for _, item in items)):
        return None
    signed = any(match["sign"] for match in decimals)
    data = bytes(_number(text, at, item, signed=signed) for at, item in items)
    note = "read as decimal numbers; prefix hexadecimal numbers with 0x" if plain_text else None
    return Input(data, "decimal", note)


def _body(code: str) -> tuple[int, int, str]:
    """Start and end of the numbers of a list, and the bracket before them; all of the text if there is no bracket."""
    begin = max(code.rfind(each) for each in "[({<")
    end = next((at for at in range(begin, len(code)) if code[at] in "])}>"), -1) if begin >= 0 else -1
    if end < 0 or begin > _MOST_BEFORE_LIST:
        return 0, len(code), ""
    tail = _TAIL.fullmatch(code, end) or ("(" in code[:begin] and _ARGUMENT.fullmatch(code, end))
    plain = tail and _BEFORE_LIST.fullmatch(code, 0, begin + 1)
    if plain or (_LABEL.fullmatch(code, 0, begin + 1) and _WORDS.fullmatch(code, end + 1)):
        return begin + 1, end, code[begin]
    return 0, len(code), ""


def _is_hex(items: list[tuple[int, str]]) -> bool:
    """Whether all items are two hexadecimal digits, and some cannot be decimal."""
    digits = all(len(item) == 2 and _HEX_NUMBER.fullmatch(item) for _, item in items)
    return digits and any(not item.isdecimal() or item[0] == "0" for _, item in items)


def _hex_list(text: str, items: list[tuple[int, str]]) -> Input:
    for at, item in items:
        if _CUT.match(item):
            raise wrong(text, at, "the list is cut; print all of it")
        if len(item) != 2 or not _HEX_NUMBER.fullmatch(item):
            raise wrong(text, at, f"{item!r} is not two hexadecimal digits")
    return Input(bytes.fromhex("".join(item for _, item in items)), "hex")


def _number(text: str, at: int, item: str, *, signed: bool) -> int:
    """The byte of an item of a list."""
    if _CUT.match(item):
        raise wrong(text, at, "the list is cut; print all of it")
    if item[0] == "'" and len(item) > 2:
        return _character(text, at, item)
    if _PREFIXED.fullmatch(item):
        return int(item, 0)
    match = _DECIMAL.fullmatch(item)
    if match is None:
        raise wrong(text, at, f"{item!r} is not the decimal number of a byte")
    number = int(match["sign"] + match["digits"])
    low, high = (-0x80, 0x7F) if signed else (0, 0xFF)
    if not low <= number <= high:
        raise wrong(text, at, f"{number} is not in {low} to {high}" + (", as other numbers are negative" * signed))
    return number % 0x100


def _character(text: str, at: int, item: str) -> int:
    byte: bytes = ast.literal_eval(f"b{item}") if _LITERAL.fullmatch(item) and item.isascii() else b""
    if len(byte) != 1:
        raise wrong(text, at, f"{item} is not a character of one byte")
    return byte[0]


def read_url(text: str) -> Input | None:
    """Bytes that are escaped as in a URL, from the first one on; None for other text.

    >>> read_url("%00%00%00%05hello").data
    b'\\x00\\x00\\x00\\x05hello'
    """
    return Input(unquote_to_bytes(text.strip()), "hex") if _URL.fullmatch(text) else None


def read_named(text: str) -> Input | None:
    """Hex that the words of each line name, as in a log; None for other text.

    >>> read_named("12:00:07 DEBUG sent 8 bytes: 00000004cafe0001").data.hex()
    '00000004cafe0001'
    """
    numbers_of_lines = [_NAMED.findall(line) for line in text.split("\n") if line.strip()]
    if any(len(numbers) != 1 for numbers in numbers_of_lines) or not re.search(r"[g-zG-Z]", text):
        return None
    digits = [re.sub(r"[ :-]|^0x", "", number) for (number,) in numbers_of_lines]
    if any(len(each) % 2 for each in digits):
        return None
    dumps = tuple(map(bytes.fromhex, digits))
    note = "the text around the hex was skipped"
    return Input(b"".join(dumps), "hex", note, dumps if len(dumps) > 1 else ())


def read_box(text: str) -> Input | None:
    """The boxes that Netty's ``ByteBufUtil.prettyHexDump`` draws, None for other text.

    A box begins where its offset is 0. The lines of ``LoggingHandler`` before the boxes name their senders.

    Raises:
        Misuse: for a row that does not continue the row before, a text column that shows other bytes.
    """
    lines = text.split("\n")
    if not any(_BOX.fullmatch(line) for line in lines):
        return None
    boxes: list[bytearray] = []
    heads: list[tuple[str, str]] = []  # the channel and the direction of each box
    head = ("", "")
    skipped: list[int] = []
    for number, line in enumerate(lines, 1):
        match = _BOX.fullmatch(line)
        if match is None:
            if header := _BOX_HEAD.search(line):
                head = header["channel"] or "", "in" if header["direction"] in ("READ", "RECEIVED") else "out"
            elif line.strip() and not _BOX_FRAME.fullmatch(line):
                skipped.append(number)
            continue
        offset, row = int(match["offset"], 16), bytes.fromhex(match["bytes"])
        if offset == 0:
            boxes.append(bytearray())
            heads.append(head)
            head = ("", "")
        if not boxes or offset != len(boxes[-1]):
            raise wrong_in_line(number, line, 0, f"the row should begin at {len(boxes[-1]) if boxes else 0:#x}")
        if not shows(match["text"], row) and match["text"].strip():
            raise wrong_in_line(number, line, match.start("text"), "the text column does not show these bytes")
        boxes[-1] += row
    note = f"line {skipped[0]} is not part of the box and was skipped" if skipped else None
    data = b"".join(boxes)
    if len(boxes) == 1:
        return Input(data, "netty", note)
    one = len({channel for channel, _ in heads}) == 1 and all(direction for _, direction in heads)
    sides = tuple(int(direction != heads[0][1]) for _, direction in heads) if one else ()
    return Input(data, "netty", note, tuple(map(bytes, boxes)), sides)


def doubtful(text: str) -> str | None:
    """A note if hex without prefixes could also be a list of decimal numbers; else None."""
    items = [item.strip() for item in text.split(",")]
    if len(items) < 2 or any(len(item) != 2 or not item.isdecimal() or item[0] == "0" for item in items):
        return None
    return "the numbers were read as hexadecimal; put decimal ones in brackets"
