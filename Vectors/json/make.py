#!/usr/bin/env python3
"""Makes the vectors of canonical JSON with nothing but Python's standard library.

    python3 Vectors/json/make.py          writes the .json files beside it
    python3 Vectors/json/make.py --check  fails where they differ from what it would write

See README.md for what the files hold. The output is the same on every run.
"""

import json
import math
import random
import struct
import sys
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
DEPTH = 512


# An implementation of its own: Python's parser with hooks, and everything that Python leaves open checked by hand.


class Refused(Exception):
    pass


def es_number(value: float) -> str:
    """ECMA-262, Number::toString, from the digits of repr()."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(abs(value))).as_tuple()
    digits = "".join(map(str, digits))
    point = len(digits) + exponent
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if count > 1 else "")
        text += "e" + ("+" if point > 0 else "-") + str(abs(point - 1))
    return ("-" if value < 0 else "") + text


def in_64_bits(value: int) -> bool:
    return -(2**63) <= value < 2**64


def number_text(value: float) -> str:
    if value == math.floor(value) and in_64_bits(int(value)):
        return str(int(value))
    return es_number(value)


class Number:
    def __init__(self, literal: str):
        is_integer = not any(c in literal for c in ".eE")
        if is_integer and in_64_bits(int(literal)):
            self.text = str(int(literal))
            return
        mantissa, _, exponent = literal.lower().partition("e")
        integer, _, fraction = mantissa.partition(".")
        digits = int(integer.lstrip("-") + fraction)
        scale = int(exponent or 0) - len(fraction)
        while digits != 0 and digits % 10 == 0:
            digits, scale = digits // 10, scale + 1
        if not is_integer and 0 <= scale < 30 or digits == 0:
            exact = digits * 10 ** (scale if digits else 0) * (-1 if literal.startswith("-") else 1)
            if in_64_bits(exact):
                self.text = str(exact)
                return
        value = float(literal)
        if math.isinf(value) or value == 0:
            raise Refused("number out of range")
        self.text = number_text(value)
        if is_integer and self.text != literal:
            raise Refused("integer out of range")


def members(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise Refused("duplicate key")
    return dict(pairs)


def refuse_constant(_):
    raise Refused("not a number")


def string_text(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(short.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def canonical_text(value) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, Number):
        return value.text
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical_text, value)) + "]"
    ordered = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(string_text(key) + ":" + canonical_text(value[key]) for key in ordered) + "}"


def parse(data: bytes):
    try:
        text = data.decode("utf-8", "strict")
        if text.startswith("\ufeff"):
            raise Refused("byte order mark")
        value = json.loads(
            text, object_pairs_hook=members, parse_int=Number, parse_float=Number, parse_constant=refuse_constant
        )
    except ValueError as error:
        raise Refused(str(error)) from error
    return value


def canonical(data: bytes) -> bytes:
    try:
        return canonical_text(parse(data)).encode("utf-8", "strict")
    except UnicodeEncodeError as error:
        raise Refused("lone surrogate") from error


# The vectors.


def entry(name: str, data: bytes) -> dict:
    result = {"name": name}
    try:
        result["input"] = data.decode("utf-8")
    except UnicodeDecodeError:
        result["inputHex"] = data.hex()
    return result


VALID = {
    "null": "null",
    "true": "true",
    "false": " false ",
    "zero": "0",
    "string": '"text"',
    "empty string": '""',
    "empty array": "[]",
    "empty object": "{}",
    "empty containers with white space": "{ \n\t\r\"a\" : [ ] , \"b\" : { } }",
    "white space everywhere": ' \t\r\n{ "b" : [ 1 , 2 , { "d" : null , "c" : true } ] , "a" : "x" }\n',
    "members out of order": '{"b":2,"a":1,"c":3}',
    "members out of order at every depth": '{"z":{"y":{"x":1,"w":[{"v":1,"u":2}]},"a":[]},"b":{"d":1,"c":2}}',
    "members in order around an unordered one": '{"a":1,"b":{"y":1,"x":2},"c":[{"n":1,"m":2},{"k":1,"l":2}],"d":4}',
    "shorter key first": '{"ab":1,"a":2,"abc":3,"":4}',
    "keys with a long common start": '{"abcdefghij2":1,"abcdefghij1":2,"abcdefghi":3,"abcdefgh":4}',
    "keys of eight bytes": '{"12345678":1,"12345677":2,"1234567":3}',
    "keys with control characters": '{"a\\u0001":1,"a\\u0000":2,"a":3,"\\u0000":4,"":5,"\\u0000\\u0000":6}',
    "keys in escapes and not": '{"\\u0062":1,"a":2,"\\u0063":3}',
    "a key that starts with a quotation mark": '{"#":1,"\\"":2,"!":3,"\\\\":4,"]":5,"[":6}',
    "keys by UTF-16 and not by UTF-8": '{"\U0001f600":1,"\ufb33":2,"\u20ac":3,"\ue000":4,"\ud7ff":5,"\U00010000":6}',
    "keys by UTF-16 after the eighth byte": '{"12345678\U0001f600":1,"12345678\uffff":2,"12345678a":3}',
    "composed and decomposed keys are two": '{"\u00e9":1,"e\u0301":2}',
    "RFC 8785, section 3.2.3": '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh",'
    '"1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
    "RFC 8785, section 3.2.2": '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
    '"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals": [null, true, false]}',
    "every short escape": '"\\b\\f\\n\\r\\t\\"\\\\"',
    "solidus": '"a\\/b"',
    "every control character": '"' + "".join(f"\\u{n:04X}" for n in range(32)) + '\\u007f\u007f"',
    "escapes of what needs none": '"\\u0041\\u00e9\\u20ac\\ud83d\\ude00"',
    "escaped surrogates in upper case": '"\\uD83D\\uDE00"',
    "the ends of Unicode": '"\\u0080\\u07ff\\u0800\\ud7ff\\ue000\\uffff\\ud800\\udc00\\udbff\\udfff"',
    "the same ends unescaped": '"\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"',
    "noncharacters and separators": '"\ufdd0\ufffe\u2028\u2029"',
    "a string longer than a word, then an escape": '"abcdefgh\\nabcdefghijklmnop\\u00e9q"',
    "one as a fraction": "1.0",
    "one hundred with an exponent": "1e2",
    "negative zero": "-0",
    "negative zero as a fraction": "-0.0",
    "zero with an exponent": "0e400",
    "negative zero with an exponent": "-0.000e-999999999999",
    "a fraction with zeros": "1.50",
    "an exponent with a plus sign": "1E+2",
    "a small exponent that cancels": "12300e-2",
    "Int64.max": "9223372036854775807",
    "Int64.min": "-9223372036854775808",
    "Int64.max + 1": "9223372036854775808",
    "UInt64.max": "18446744073709551615",
    "UInt64.max as a fraction": "18446744073709551615.0",
    "an integer that no Double has, as a fraction": "9007199254740993.0",
    "an integer that no Double has, with an exponent": "9007199254740993e0",
    "an integer that only an exponent makes too large for a Double": "4503599627370497e1",
    "halfway between integers that no Double has": "9007199254740993.5",
    "2^64 as a fraction": "18446744073709551616.0",
    "2^64 as it is written": "18446744073709552000",
    "-2^63 - 2^11 as it is written": "-9223372036854778000",
    "1e20 as it is written": "100000000000000000000",
    "1e20": "1e20",
    "1e21": "1e21",
    "1e21 in many digits": "1000000000000000000000.0",
    "123456789012345680000": "123456789012345680000",
    "2^53 - 1": "9007199254740991",
    "2^53": "9007199254740992.0",
    "2^53 + 1": "9007199254740993",
    "0.000001": "0.000001",
    "1e-7": "0.0000001",
    "the smallest Double": "5e-324",
    "what rounds up to the smallest Double": "2.5e-324",
    "the smallest normal Double": "2.2250738585072014e-308",
    "the largest subnormal Double": "2.225073858507201e-308",
    "the largest Double": "1.7976931348623157e308",
    "just below what rounds to infinity": "1.7976931348623158e308",
    "one third": "0.3333333333333333333333333333",
    "a tie that rounds to even": "1." + "0" * 15 + "11102230246251565404236316680908203125",
    "a tie broken by the last of 1000 digits": "1." + "0" * 15 + "11102230246251565404236316680908203125" + "0" * 950 + "1",
    "a long fraction of zeros": "1." + "0" * 2000,
    "many digits and an exponent that takes them back": "1" + "0" * 2000 + ".0e-2000",
    "a small number with many zeros": "0." + "0" * 400 + "1e400",
    "as deep as allowed, arrays": "[" * DEPTH + "]" * DEPTH,
    "as deep as allowed, objects": '{"a":' * (DEPTH - 1) + "{}" + "}" * (DEPTH - 1),
    "as deep as allowed, out of order": '{"b":' * (DEPTH - 1) + "{}" + ',"a":0}' * (DEPTH - 1),
}

INVALID = {
    "nothing": "",
    "white space": " \n",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16-le"),
    "something after the value": "{} 1",
    "a second value": "{}{}",
    "a bracket too many": "[]]",
    "an array without end": "[1",
    "an array that ends as an object": "[1}",
    "an object without end": '{"a":1',
    "an object that ends as an array": '{"a":1]',
    "only a brace": "{",
    "only a bracket": "[",
    "a comma at the end of an array": "[1,]",
    "a comma at the end of an object": '{"a":1,}',
    "a comma at the start of an array": "[,1]",
    "a comma at the start of an object": '{,"a":1}',
    "a comma alone": "[,]",
    "two commas": "[1,,2]",
    "no comma": "[1 2]",
    "no comma between members": '{"a":1 "b":2}',
    "no colon": '{"a" 1}',
    "two colons": '{"a"::1}',
    "no value": '{"a":}',
    "no value before a comma": '{"a":,"b":1}',
    "no key": "{:1}",
    "a key without quotation marks": "{a:1}",
    "a key in single quotation marks": "{'a':1}",
    "a number as a key": "{1:1}",
    "a member in an array": '["a":1]',
    "an element in an object": '{"a"}',
    "a comment": "{/* */}",
    "a form feed as white space": "\f{}",
    "a no-break space as white space": "\u00a0{}",
    "NaN": "NaN",
    "Infinity": "[Infinity]",
    "minus Infinity": "-Infinity",
    "undefined": "undefined",
    "True": "True",
    "half a literal": "tru",
    "half a literal in an array": "[nul]",
    "a literal and more": "truee",
    "a plus sign": "+1",
    "a leading zero": "01",
    "a leading zero after a minus sign": "-01",
    "two zeros": "00",
    "only a minus sign": "-",
    "two minus signs": "--1",
    "a point without digits before it": ".5",
    "a minus sign and a point": "-.5",
    "a point without digits after it": "1.",
    "a point and an exponent": "1.e5",
    "an exponent without digits": "1e",
    "an exponent of a sign": "1e+",
    "two points": "1.2.3",
    "a fraction in the exponent": "1e1.5",
    "hexadecimal": "0x10",
    "digits with a separator": "1_000",
    "a number of another script": "\u0661",
    "2^64": "18446744073709551616",
    "-2^63 - 1": "-9223372036854775809",
    "an integer that no Double has": "100000000000000000001",
    "1e21 in digits": "1" + "0" * 21,
    "1e20 with a sign and more digits": "-100000000000000000000000",
    "too large": "1e309",
    "what rounds to infinity": "1.7976931348623159e308",
    "too large, negative": "-1e400",
    "a huge exponent": "1e99999999999999999999",
    "too small": "1e-324",
    "what rounds to zero": "2.4703282292062327e-324",
    "too small, negative": "-1e-400",
    "a hugely negative exponent": "1e-99999999999999999999",
    "a string without end": '"abc',
    "a string that ends in a backslash": '"abc\\',
    "a string that ends in an escape": '"abc\\u12',
    "an unknown escape": '"\\x41"',
    "an upper-case escape": '"\\N"',
    "an escape of a single quotation mark": '"\\\'"',
    "an escape with too few digits": '"\\u12"',
    "an escape with other digits": '"\\u12g4"',
    "an escape with a sign": '"\\u+123"',
    "a newline in a string": '"a\nb"',
    "a tab in a string": '"a\tb"',
    "a NUL in a string": '"a\0b"',
    "a control character at the end of a word": '"abcdefg\x1f"',
    "a control character in a key": '{"a\nb":1}',
    "a lone high surrogate": '"\\ud800"',
    "a lone low surrogate": '"\\udc00"',
    "two low surrogates": '"\\udc00\\udc00"',
    "two high surrogates": '"\\ud800\\ud800"',
    "surrogates the wrong way round": '"\\udc00\\ud800"',
    "a high surrogate and a character": '"\\ud800a"',
    "a high surrogate and another escape": '"\\ud800\\n"',
    "a high surrogate and another character escaped": '"\\ud800\\u0041"',
    "a lone surrogate in a key": '{"\\udfff":1}',
    "a lone surrogate in UTF-8": b'"\xed\xa0\x80"',
    "a surrogate pair in UTF-8": b'"\xed\xa0\xbd\xed\xb8\x80"',
    "a continuation byte alone": b'"\x80"',
    "a lead byte alone": b'"\xc3"',
    "a lead byte at the end": b'"abc\xc3',
    "three bytes cut short": b'"\xe2\x82"',
    "four bytes cut short": b'"\xf0\x9f\x98"',
    "an overlong slash": b'"\xc0\xaf"',
    "an overlong character of two bytes": b'"\xc1\xbf"',
    "an overlong character of three bytes": b'"\xe0\x9f\xbf"',
    "an overlong character of four bytes": b'"\xf0\x8f\xbf\xbf"',
    "beyond Unicode": b'"\xf4\x90\x80\x80"',
    "a lead byte of five": b'"\xf8\x88\x80\x80\x80"',
    "the byte FF": b'"\xff"',
    "UTF-8 outside a string": "[\u00e9]",
    "Latin-1": '"caf\xe9"'.encode("latin-1"),
    "a bad byte in a key": b'{"a\xff":1}',
    "the same key twice": '{"a":1,"a":1}',
    "the same key twice, apart": '{"a":1,"b":2,"a":3}',
    "the same key twice, escaped": '{"a":1,"\\u0061":2}',
    "the same key twice, a solidus escaped": '{"/":1,"\\/":2}',
    "the same key twice, a surrogate pair": '{"\U0001f600":1,"\\ud83d\\ude00":2}',
    "the same long key twice": '{"abcdefghijk":1,"abcdefghijk":2}',
    "the empty key twice": '{"":1,"":2}',
    "the same key twice, nested": '[{"b":{"x":1,"y":2,"x":3}}]',
    "the same key twice around an object": '{"a":{"b":{"c":1}},"a":2}',
    "the same key twice among many": "{" + ",".join(f'"k{n * 37 % 101}":{n}' for n in range(102)) + "}",
    "too deep, arrays": "[" * (DEPTH + 1) + "]" * (DEPTH + 1),
    "too deep, objects": '{"a":' * DEPTH + "{}" + "}" * DEPTH,
    "far too deep": "[" * 5_000,
}

DOCUMENTS = {
    "only content": '{"b":1,"a":2}',
    "an id": '{"_id":"x","a":1}',
    "an id among the rest": '{"a":1,"_id":"\u00e9","b":2}',
    "an escaped id": '{"\\u005fid":"x\\n","z":1,"a":2}',
    "all of them": '{"_rev":"1-abc","_deleted":true,"_attachments":{"b":{"stub":true},"a":{}},"_id":"d","x":{"_y":1}}',
    "not deleted": '{"_deleted":false}',
    "only an id": '{"_id":""}',
    "attachments stay": '{"a":1,"_attachments":{},"Z":1}',
    "nested keys with an underscore stay": '{"a":{"_id":1,"_other":2},"b":[{"_x":1}]}',
    "white space around members that go": '{ "_id" : "x" , "b" : 1 , "_rev" : "1-a" , "a" : [ 2 , 1 ] }',
}

INVALID_DOCUMENTS = {
    "an array": "[]",
    "a string": '"a"',
    "a number": "1",
    "null": "null",
    "another key with an underscore": '{"_other":1}',
    "only an underscore": '{"_":1}',
    "another key that starts like one": '{"_idx":"a"}',
    "another key with an escaped underscore": '{"a":1,"\\u005fother":1}',
    "an id in another case": '{"_ID":"a"}',
    "_revisions": '{"_revisions":{}}',
    "two ids": '{"_id":"a","_id":"b"}',
    "two ids, one escaped": '{"_id":"a","b":1,"\\u005fid":"a"}',
    "a number as the id": '{"_id":1}',
    "null as the id": '{"_id":null}',
    "a number as the revision": '{"_rev":1}',
    "a string as the deletion": '{"_deleted":"true"}',
    "a list as the attachments": '{"_attachments":[]}',
}


def documents():
    for name, text in DOCUMENTS.items():
        value = parse(text.encode())
        content = {k: v for k, v in value.items() if k not in ("_id", "_rev", "_deleted")}
        result = entry(name, text.encode()) | {"canonical": canonical_text(content)}
        result["id"] = value.get("_id")
        result["revision"] = value.get("_rev")
        result["isDeletion"] = value.get("_deleted", False)
        result["hasAttachments"] = "_attachments" in value
        yield result


def random_string(rng: random.Random) -> str:
    alphabets = ["abcxyz", 'a"\\/\b\n\x00\x1f\x7f', "\u00e9\u20ac\ue000\uffff\U00010000\U0001f600", "ab\u0301e\u00e9"]
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.choice([0, 1, 2, 3, 7, 8, 9, 20])))


def random_number(rng: random.Random) -> str:
    kind = rng.randrange(5)
    if kind == 0:
        return str(rng.randrange(-1000, 1000))
    if kind == 1:
        return str(rng.choice([-(2**63), 2**63, 2**64, 2**53]) - rng.choice([0, 0, 1]) * rng.choice([1, -1])).replace(
            "18446744073709551616", "1").replace("-9223372036854775809", "2").replace("18446744073709551617", "3")
    if kind == 2:
        return repr(rng.uniform(-1000, 1000))
    if kind == 3:
        return f"{rng.randrange(-99, 99)}.{rng.randrange(100):03}e{rng.randrange(-30, 30)}"
    return repr(random_double(rng))


def random_double(rng: random.Random) -> float:
    while True:
        value = struct.unpack(">d", rng.randbytes(8))[0]
        if math.isfinite(value):
            return value


def space(rng: random.Random) -> str:
    return rng.choice(["", "", "", " ", "\n  ", "\t", "\r\n"])


def write_string(rng: random.Random, text: str) -> str:
    out = []
    for c in text:
        units = c.encode("utf-16-be")
        escaped = "".join(f"\\u{int.from_bytes(units[i:i + 2], 'big'):04{rng.choice('xX')}}" for i in range(0, len(units), 2))
        plain = string_text(c)[1:-1]
        out.append(escaped if rng.random() < 0.1 else "\\/" if c == "/" and rng.random() < 0.5 else plain)
    return '"' + "".join(out) + '"'


def random_text(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(8 if depth > 0 else 5)
    if kind == 0:
        return rng.choice(["null", "true", "false"])
    if kind <= 2:
        return write_string(rng, random_string(rng))
    if kind <= 4:
        return random_number(rng)
    count = rng.choice([0, 1, 2, 3, 5, 40 if depth == 3 else 4])
    if kind == 5:
        items = [space(rng) + random_text(rng, depth - 1) + space(rng) for _ in range(count)]
        return "[" + (",".join(items) or space(rng)) + "]"
    keys = list({random_string(rng) + rng.choice(["", str(n)]): None for n in range(count)})
    if rng.random() < 0.3:
        keys.sort(key=lambda key: key.encode("utf-16-be"))
    items = [
        space(rng) + write_string(rng, key) + space(rng) + ":" + space(rng) + random_text(rng, depth - 1) + space(rng)
        for key in keys
    ]
    return "{" + (",".join(items) or space(rng)) + "}"


def numbers():
    rng = random.Random(8785)
    values = [random_double(rng) for _ in range(1500)]
    for exponent in range(-25, 26):
        for digits in ("1", "1.5", "9.999999999999999", "1.2345678901234567"):
            values.append(float(f"{digits}e{exponent}"))
    for power in range(-1074, 1024, 3):
        values.append(math.ldexp(1.0, power))
        if -1000 < power:
            values += [math.nextafter(math.ldexp(1.0, power), 0.0), math.nextafter(math.ldexp(1.0, power), math.inf)]
    values += [2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, math.nextafter(2.0**64, 0)]
    values += [5e-324, 1.7976931348623157e308, 1e21, 1e20, 123456789012345680000.0, 0.000001, 1e-7, 0.1, 1 / 3]
    for value in values:
        yield {"bits": struct.pack(">d", value).hex(), "canonical": number_text(value)}


def as_bytes(text) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def files():
    rng = random.Random(8259)
    valid = [(name, as_bytes(text)) for name, text in VALID.items()]
    valid += [(f"random {n}", random_text(rng, 3).encode()) for n in range(150)]
    yield "valid.json", [entry(name, data) | {"canonical": canonical(data).decode()} for name, data in valid]

    invalid = []
    for name, text in INVALID.items():
        data = as_bytes(text)
        if "too deep" not in name:  # the depth is Coffer's own limit
            try:
                raise SystemExit(f"{name} should be refused, and is {canonical(data)!r}")
            except Refused:
                pass
        invalid.append(entry(name, data) | {"code": "invalidJSON"})
    yield "invalid.json", invalid

    yield "documents.json", list(documents())
    yield "invalid-documents.json", [
        entry(name, text.encode()) | {"code": "invalidJSON"} for name, text in INVALID_DOCUMENTS.items()
    ]
    yield "numbers.json", list(numbers())


def main():
    sys.setrecursionlimit(10_000)
    check = sys.argv[1:] == ["--check"]
    for name, vectors in files():
        text = "[\n" + ",\n".join(json.dumps(v, ensure_ascii=True) for v in vectors) + "\n]\n"
        if check and (HERE / name).read_text() != text:
            raise SystemExit(f"{name} is not what this script makes")
        if not check:
            (HERE / name).write_text(text)


if __name__ == "__main__":
    main()
