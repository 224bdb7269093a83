"""Damaged copies of files: changed bytes, text and structure, by a seed alone.

`mutate(content, form, random)` returns the damaged bytes and a description in words.
"""

import csv
import io
import json
import re

DEEP = 100_000
DIGITS = "9" * 5_000
RAW = {
    "infinity": "Infinity",
    "minus infinity": "-Infinity",
    "not a number": "NaN",
    "a number of 5,000 digits": DIGITS,
    "a fraction of 5,000 digits": f"0.{DIGITS}",
    "the exponent 999999": "1e999999",
    "lists 100,000 deep": "[" * DEEP + "]" * DEEP,
    "objects 100,000 deep": '{"a":' * DEEP + "1" + "}" * DEEP,
    "half of a surrogate pair": '"\\ud800"',
    "a NUL": '"\\u0000"',
    "an unknown escape": '"\\x"',
    "nothing": "",
    "one key twice": '{"a": 1, "a": 2}',
}
"""JSON that no value of Python gives, by what it is."""
VALUES = (
    *(None, True, False, 0, 1, -1, 0.5, -0.0, 1.5, 1e308, -1e308, 5e-324),
    *(2**31, 2**32, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30),
    *(
        "",
        " ",
        "text",
        "0",
        "-1",
        "NaN",
        "1e999",
        "a,b",
        "a\nb",
        "%s %d",
        "{}",
        "é",
        "😀",
        "\u2028",
    ),
    *("../../../etc/passwd", "/etc/passwd", "C:\\", "file:///etc/passwd", "x" * 100_000),
    *([], {}, [[]], [None], {"": None}, [0], ["a"], {"a": 1}, [1, 2, 3, 4], ["a", "b"]),
)
"""Values of wrong type, size or form."""
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 255, 256, 257, 5_000, 10**5, 10**6, 10**7, 10**8, 10**9, 10**12),
    *(2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**64, 0.1, 1.5, 1e4, 1e9, 1e308),
)
"""Numbers in the place of a number: of sizes that are built, and that no memory holds."""
CELLS = (
    *("", " ", "0", "-1", "1.5", "NaN", "inf", "-inf", "1e999", DIGITS, "text", "é", "😀", '"'),
    *("a,b", "a;b", "a|b", "a\nb", "\x00", "../../x", "/etc/passwd", "%", "%(a)s", "x" * 200_000),
    *("[", "{", "=1+1", "'", "true", "null", "0x10", "1_000", "１", "\u2028", "[" * 2_000),
)
"""Texts in the place of a value."""
MARK = "\ue000{}\ue001"  # private characters, which no example has


def mutate(content, form, random):
    """The damaged bytes and what was done; `form`: bytes, text, lines, csv, json or numbers."""
    ways = {"bytes": (_bytes,), "text": (_bytes, _text), "numbers": (_numbers,)}.get(form) or (
        *(_bytes, _text),
        *[{"json": _json, "csv": _csv, "lines": _lines}[form]] * 3,
    )
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        try:
            content, words = random.choice(ways)(content, random)
        except (ValueError, RecursionError, csv.Error):
            # what is no JSON or CSV any more is damaged further as bytes
            content, words = _bytes(content, random)
        done.append(words)
    return content, "; ".join(done)


def _bytes(content, random):
    size = len(content)
    at, to = (random.randrange(size + 1) for _ in range(2))
    span = min(size - at, random.choice((1, 1, 2, 4, 16, 256, 4096)))
    end = at + span
    before, part, after = content[:at], content[at:end], content[end:]
    bit = bytes([part[0] ^ 1 << random.randrange(8)]) if part else b""
    value = bytes([random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))])
    more = random.randbytes(random.choice((1, 2, 8, 64)))
    ways = {
        f"bit flipped at {at}": before + bit + content[at + 1 :],
        f"byte {at} is {value[0]}": before + value + content[at + 1 :],
        f"cut at {at}": before,
        f"{len(more)} bytes inserted at {at}": before + more + content[at:],
        f"{span} bytes at {at} twice": before + part + part + after,
        f"{span} bytes at {at} deleted": before + after,
        f"{span} bytes at {at} zero": before + bytes(span) + after,
        f"{span} bytes at {at} written at {to}": content[:to] + part + content[to + span :],
    }
    words = random.choice(list(ways))
    return ways[words], words


def _text(content, random):
    at = random.randrange(len(content) + 1)
    before, after = content[:at], content[at:]
    text = content.decode("utf-8", "replace")
    ways = {
        "empty": b"",
        "blank": b" \n",
        "with a BOM": b"\xef\xbb\xbf" + content,
        "with two BOMs": b"\xef\xbb\xbf\xef\xbb\xbf" + content,
        "UTF-16": text.encode("utf-16"),
        "Latin-1": before + "é".encode("latin-1") + after,
        "NUL": before + b"\0" + after,
        "half of a surrogate pair": before + "\ud800".encode("utf-8", "surrogatepass") + after,
        "line ends of Windows": content.replace(b"\n", b"\r\n"),
        "line ends of old Macs": content.replace(b"\n", b"\r"),
        "twice": content + content,
        "quotes doubled": content.replace(b'"', b'""'),
        "without quotes": content.replace(b'"', b""),
        "semicolons": content.replace(b",", b";"),
        "comma decimals": re.sub(rb"(\d)\.(\d)", rb"\1,\2", content),
        "upper case": text.upper().encode(),
        "10^6 letters": before + b"a" * 1_000_000 + after,
    }
    words = random.choice(sorted(ways))
    return ways[words], words


def _json(content, random):
    tree = json.loads(content)
    path = _choose(tree, random)
    where = "$" + "".join(f"[{step!r}]" for step in path)
    raw = ""
    if random.random() < 0.25:
        words = random.choice(sorted(RAW))
        raw, tree = RAW[words], _with(tree, path, MARK.format("raw"))
    else:
        words, tree = _change(tree, path, random)
    text = json.dumps(tree, indent=random.choice((None, 1)), ensure_ascii=random.random() < 0.5)
    for mark in (MARK.format("raw"), json.dumps(MARK.format("raw"))[1:-1]):
        text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass"), f"{where}: {words}"


def _numbers(content, random):
    tree = json.loads(content)
    path = random.choice([*_list_numbers(tree)])
    value = random.choice(NUMBERS)
    where = "$" + "".join(f"[{step!r}]" for step in path)
    return json.dumps(_with(tree, path, value)).encode(), f"{where}: is {value}"


def _list_numbers(tree):
    """The paths to all numbers in a tree."""
    if isinstance(tree, list | dict):
        for step in tree if isinstance(tree, dict) else range(len(tree)):
            yield from ([step, *path] for path in _list_numbers(tree[step]))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield []


def _choose(tree, random):
    """A path to some part of a tree: each level as likely as its parts, the top now and then."""
    path = []
    while isinstance(tree, list | dict) and tree and random.random() < 0.9:
        step = random.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        path.append(step)
        tree = tree[step]
    return path


def _with(tree, path, value):
    if not path:
        return value
    step, *rest = path
    copy = tree.copy()
    copy[step] = _with(tree[step], rest, value)
    return copy


def _get(tree, path):
    for step in path:
        tree = tree[step]
    return tree


def _change(tree, path, random):
    """A tree with one part changed in kind, place, name or number, and the words for it."""
    way = random.choice(("value", "value", "value", "delete", "rename", "double", "wrap", "swap"))
    value = _get(tree, path)
    if way == "value" or not path:
        new = random.choice(VALUES)
        return f"is {_short(new)}", _with(tree, path, new)
    if way == "wrap":
        return "in a list", _with(tree, path, [value])
    *above, step = path
    parent = _get(tree, above).copy()
    if way == "delete":
        del parent[step]
    elif way == "swap":
        other = random.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        parent[step], parent[other] = parent[other], parent[step]
    elif isinstance(parent, list):
        parent.insert(step, value)
    else:
        parent[random.choice(("", f"{step} ", "unknown", step.upper(), "é" * 300))] = value
        if way == "rename":
            del parent[step]
    return way, _with(tree, above, parent)


def _csv(content, random):
    text = content.decode("utf-8")
    comma = max(",;\t", key=text.count)
    rows = list(csv.reader(io.StringIO(text), delimiter=comma))
    # the head as often as the rest together
    row = random.choice((0, random.randrange(len(rows)))) if rows else 0
    if not rows or not rows[row]:
        raise ValueError("no cell to change")
    column = random.randrange(len(rows[row]))
    way = random.choice(
        ("cell", "cell", "cell", "drop", "more", "row", "no row", "column", "order")
    )
    if way == "cell":
        rows[row][column] = random.choice(CELLS)
    elif way == "drop":
        del rows[row][column]
    elif way == "more":
        rows[row].insert(column, rows[row][column])
    elif way == "row":
        rows.insert(row, rows[row])
    elif way == "no row":
        del rows[row]
    elif way == "column":
        rows = [cells[:column] + cells[column + 1 :] for cells in rows]
    else:
        random.shuffle(rows)
    out = io.StringIO()
    # quotes as they come, as in files written by hand
    csv.writer(out, delimiter=comma, lineterminator="\n", escapechar="\\").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass"), f"{way} of line {row} column {column}"


def _lines(content, random):
    """Lines as of TOML, INI and lists: a value, a key or a whole line changed."""
    lines = content.decode("utf-8").split("\n")
    number = random.randrange(len(lines))
    key, equals, value = lines[number].partition("=")
    way = random.choice(("value", "value", "value", "word", "key", "drop", "double", "swap", "add"))
    if way == "value" and equals:
        new = random.choice((*CELLS, *RAW.values(), *map(json.dumps, VALUES)))
        lines[number] = f"{key}= {new}"
    elif way == "word" and (words := lines[number].split()):
        words[random.randrange(len(words))] = random.choice(CELLS)
        lines[number] = " ".join(words)
    elif way == "key" and equals:
        lines[number] = f"{random.choice(CELLS)} ={value}"
    elif way == "drop":
        del lines[number]
    elif way == "swap":
        other = random.randrange(len(lines))
        lines[number], lines[other] = lines[other], lines[number]
    elif way == "add":
        lines.insert(number, random.choice((*CELLS, "[", "[a]", "[[a]]", "a.b = 1", "#", "a =")))
    else:
        lines.insert(number, lines[number])
    return "\n".join(lines).encode("utf-8", "surrogatepass"), f"{way} of line {number}"


def _short(value):
    return repr(value)[:40]
