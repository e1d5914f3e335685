"""Terms: IRIs, blank nodes and literals, their equality and their total order.

`literal` makes numeric, boolean, dateTime, date and duration literals canonical: two are equal if datatype
and value are. `value_of` returns a literal's value for comparisons and arithmetic, `order_key` the key of the
language's total order; `from_python` and `to_python` convert from and to Python values. The text form of
terms is left to `language.printer` for programs, which `str` of a term returns, and to `io.formats.cells` for
tables.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from zodiacedge.errors import Diagnostic, LoadProblem, UsageProblem

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD_STRING = XSD + "string"
XSD_INTEGER = XSD + "integer"
XSD_DECIMAL = XSD + "decimal"
XSD_DOUBLE = XSD + "double"
XSD_FLOAT = XSD + "float"
XSD_BOOLEAN = XSD + "boolean"
XSD_DATETIME = XSD + "dateTime"
XSD_DATE = XSD + "date"
XSD_DURATION = XSD + "duration"
XSD_DAY_TIME_DURATION = XSD + "dayTimeDuration"
RDF_LANGSTRING = RDF + "langString"
RDF_TYPE = RDF + "type"

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1

# The integer types of XSD with the range each allows; all are held as xsd:integer.
INTEGER_RANGES: dict[str, tuple[int, int]] = {
    XSD_INTEGER: (INTEGER_MIN, INTEGER_MAX),
    XSD + "long": (INTEGER_MIN, INTEGER_MAX),
    XSD + "int": (-(2**31), 2**31 - 1),
    XSD + "short": (-(2**15), 2**15 - 1),
    XSD + "byte": (-(2**7), 2**7 - 1),
    XSD + "nonNegativeInteger": (0, INTEGER_MAX),
    XSD + "positiveInteger": (1, INTEGER_MAX),
    XSD + "nonPositiveInteger": (INTEGER_MIN, 0),
    XSD + "negativeInteger": (INTEGER_MIN, -1),
    XSD + "unsignedLong": (0, INTEGER_MAX),
    XSD + "unsignedInt": (0, 2**32 - 1),
    XSD + "unsignedShort": (0, 2**16 - 1),
    XSD + "unsignedByte": (0, 2**8 - 1),
}
NUMERIC_TYPES = frozenset({XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE, XSD_FLOAT})

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATETIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
# Without a time zone, or in UTC: a day in another time zone is not a day in UTC.
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(Z|[+-]00:00)?")
# Days to seconds; a length with months or years has another datatype.
_DURATION = re.compile(
    r"(-?)P(?=[0-9T])(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
_LONGEST_DURATION = 100
_IRI_FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')
# A column in braces, in a template of terms.
PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MICROSECOND = timedelta(microseconds=1)

_TERM_TYPES = "use str, int, float, bool, datetime, date, timedelta, or ze.iri('…') for a name"

Value = int | float | bool | str | datetime | date | timedelta


class _Printed:
    """A term as text: `str` is the language's own syntax."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the term as a program writes it, without prefixes but the standard ones."""
        from zodiacedge.language.printer import format_term  # noqa: PLC0415 - a layer above

        return format_term(self)  # type: ignore[arg-type] # the subclasses are the terms


@dataclass(frozen=True, slots=True, repr=False)
class IRI(_Printed):
    """A name: a full IRI, or a relative one kept as written."""

    value: str

    def __repr__(self) -> str:
        """Return `IRI('name')`."""
        return f"IRI({self.value!r})"


@dataclass(frozen=True, slots=True, repr=False)
class IRITemplate(IRI):
    """An IRI with names of columns in braces, `http://farm/{sensor}`: it makes IRIs of rows."""

    def __repr__(self) -> str:
        """Return `IRITemplate('text')`."""
        return f"IRITemplate({self.value!r})"


@dataclass(frozen=True, slots=True, repr=False)
class BlankNode(_Printed):
    """A blank node; its label is local to the data that it was loaded with."""

    label: str

    def __repr__(self) -> str:
        """Return `BlankNode('label')`."""
        return f"BlankNode({self.label!r})"

    def __hash__(self) -> int:
        """Return another hash than the IRI of the same text: states are compared by sums of hashes."""
        return hash(("_:", self.label))


@dataclass(frozen=True, slots=True, repr=False)
class Literal(_Printed):
    """A literal in canonical form; made by `literal`, `string` or `from_python`."""

    lexical: str
    datatype: str = XSD_STRING
    language: str = ""

    def __repr__(self) -> str:
        """Return `Literal('text')`, with the datatype or the language if it is no plain string."""
        if self.language:
            return f"Literal({self.lexical!r}, language={self.language!r})"
        if self.datatype == XSD_STRING:
            return f"Literal({self.lexical!r})"
        short = f"xsd:{self.datatype.removeprefix(XSD)}" if self.datatype.startswith(XSD) else self.datatype
        return f"Literal({self.lexical!r}, {short!r})"


Term = IRI | BlankNode | Literal


def is_iri(value: str) -> bool:
    """Whether a text holds only characters that are allowed in an IRI."""
    return not _IRI_FORBIDDEN.search(value)


def iri(value: str) -> IRI:
    """Return the IRI of a name; refuse characters that are not allowed in an IRI.

    A name with columns in braces, `http://farm/{sensor}`, makes IRIs of the rows of a table: see `add_facts`.
    """
    _need_text(value)
    bad = _IRI_FORBIDDEN.search(value)
    if bad and is_iri(PLACEHOLDER.sub("", value)):
        return IRITemplate(value)
    if bad:
        raise LoadProblem(
            Diagnostic(
                "T001",
                f"{value!r} is not an IRI: it holds {bad.group()!r}",
                "percent-encode the character (a space is %20)",
            )
        )
    return IRI(value)


def given_literal(text: str, datatype: str = "", *, language: str = "") -> Literal:
    """Return the literal of a text: a string, or one of a datatype or of a language.

        ze.literal("5.0", "xsd:decimal"), ze.literal("kalt", language="de")

    Args:
        text: The text; with columns in braces, "{value}", it makes literals of the rows of a table.
        datatype: The datatype, as a full IRI or as `xsd:name`.
        language: The tag of the language.
    """
    given: tuple[object, ...] = (text, datatype, language)
    for value in given:
        if not isinstance(value, str):
            hint = 'write it as a string: ze.literal("5.0", "xsd:decimal")'
            raise UsageProblem(Diagnostic("U013", f"expected a text, found {value!r}", hint))
    if language and datatype:
        raise UsageProblem(Diagnostic("U013", "a literal has a datatype or a language", "leave one out"))
    if language or not datatype:
        return string(text, language)
    return literal(text, f"{XSD}{datatype[4:]}" if datatype.startswith("xsd:") else datatype)


def _need_text(value: object) -> None:
    if not isinstance(value, str):
        hint = 'write it as a string: ze.iri("http://example.org/wt1")'
        raise UsageProblem(Diagnostic("U013", f"expected the name of an IRI, found {value!r}", hint))


def string(text: str, language: str = "") -> Literal:
    """Return a plain string, or a string tagged with a language."""
    if language:
        return Literal(text, RDF_LANGSTRING, language.lower())
    return Literal(text)


def integer(value: int) -> Literal:
    """Return the xsd:integer of a 64-bit number."""
    return Literal(str(value), XSD_INTEGER)


def double(value: float) -> Literal:
    """Return the xsd:double of a finite number, in shortest round-trip form."""
    return Literal(_double_text(value), XSD_DOUBLE)


def decimal(value: float) -> Literal:
    """Return the xsd:decimal of a finite number."""
    return Literal(_decimal_text(value), XSD_DECIMAL)


def boolean(value: bool) -> Literal:  # noqa: FBT001 - the value itself, not a switch
    """Return the xsd:boolean of a truth value."""
    return Literal("true" if value else "false", XSD_BOOLEAN)


def date_time(value: datetime) -> Literal:
    """Return the xsd:dateTime of a datetime; without a time zone it is taken as UTC."""
    moment = _in_utc(value) or value
    text = moment.replace(tzinfo=None).isoformat()
    return Literal(f"{text.rstrip('0') if moment.microsecond else text}Z", XSD_DATETIME)


def calendar_date(value: date) -> Literal:
    """Return the xsd:date of a date."""
    return Literal(value.isoformat(), XSD_DATE)


def duration(value: timedelta) -> Literal:
    """Return the xsd:dayTimeDuration of a length of time, to the microsecond."""
    return Literal(_duration_text(microseconds(value)), XSD_DAY_TIME_DURATION)


def microseconds(value: timedelta) -> int:
    """Return a length of time as a number of microseconds."""
    return value // _MICROSECOND


def literal(lexical: str, datatype: str = XSD_STRING) -> Literal:
    """Return the literal of a lexical form and a datatype, canonical if the datatype is supported.

    A form that its datatype does not allow, or a value beyond 64 bits, is kept as written: such a
    term has no value.
    """
    if datatype == XSD_STRING:
        return Literal(lexical)
    text = lexical.strip(" \t\r\n")
    if datatype in INTEGER_RANGES:
        low, high = INTEGER_RANGES[datatype]
        if _in_64_bits(text) and low <= (number := _int(text)) <= high:
            return integer(number)
    elif datatype == XSD_DECIMAL:
        if (real := _finite(text, _DECIMAL)) is not None:
            return decimal(real)
    elif datatype in {XSD_DOUBLE, XSD_FLOAT}:
        if (real := _finite(text, _DOUBLE)) is not None:
            return Literal(_double_text(real), datatype)
    elif datatype == XSD_BOOLEAN:
        if text in {"true", "1", "false", "0"}:
            return boolean(text in {"true", "1"})
    elif datatype == XSD_DATETIME:
        moment = _parse_date_time(text)
        if moment is not None:
            return date_time(moment)
    elif datatype == XSD_DATE:
        day = _parse_date(text)
        if day is not None:
            return calendar_date(day)
    elif datatype == XSD_DAY_TIME_DURATION:
        length = _parse_duration(text)
        if length is not None:
            return duration(length)
    return Literal(lexical, datatype)


@lru_cache(maxsize=65536)
def value_of(term: Term) -> Value | None:
    """Return a term's value for comparisons and arithmetic, or None if it has none."""
    if not isinstance(term, Literal):
        return None
    match term.datatype:
        case t if t == XSD_STRING:
            return term.lexical
        case t if t == XSD_INTEGER:
            return _int(term.lexical) if _in_64_bits(term.lexical) else None
        case t if t in NUMERIC_TYPES:
            return _finite(term.lexical, _DECIMAL if t == XSD_DECIMAL else _DOUBLE)
        case t if t == XSD_BOOLEAN:
            return {"true": True, "false": False}.get(term.lexical)
        case t if t == XSD_DATETIME:
            return _parse_date_time(term.lexical)
        case t if t == XSD_DATE:
            return _parse_date(term.lexical)
        case t if t == XSD_DAY_TIME_DURATION:
            return _parse_duration(term.lexical)
        case _:
            return None


def is_number(term: Term) -> bool:
    """Whether a term is a number with a value."""
    return isinstance(term, Literal) and term.datatype in NUMERIC_TYPES and value_of(term) is not None


def order_key(term: Term) -> tuple[int, object, str, str, str]:
    """Return a key for the total order of all terms (`language.md`, equality and order)."""
    if isinstance(term, IRI):
        return (8, term.value, "", "", "")
    if isinstance(term, BlankNode):
        return (9, term.label, "", "", "")
    value = value_of(term)
    ties = (term.datatype, term.lexical, term.language)
    if term.datatype == XSD_STRING:
        return (4, term.lexical, *ties)
    if term.datatype == RDF_LANGSTRING:
        return (5, term.lexical, *ties)
    if value is None:
        return (6, term.datatype, *ties)
    if isinstance(value, bool):
        return (7, value, *ties)
    if isinstance(value, timedelta):
        return (3, value, *ties)
    if isinstance(value, date):
        return (1 if isinstance(value, datetime) else 2, value, *ties)
    return (0, value, *ties)


def from_python(value: object) -> Term:
    """Return the term of a Python value: `str int float bool datetime date timedelta` are literals."""
    match value:
        case IRI() | BlankNode() if not isinstance(value, IRITemplate):
            return value
        case Literal(lexical=text) if _is_well_formed(text):
            return value
        case bool():
            return boolean(value)
        case int() if INTEGER_MIN <= value <= INTEGER_MAX:
            return integer(int(value))
        case float() if math.isfinite(value):
            return double(value)
        case str() if _is_well_formed(value):
            return string(str.__str__(value))  # a subclass may override __str__
        case datetime() if (moment := _in_utc(value)) is not None:
            return date_time(moment)
        case date() if not isinstance(value, datetime):
            return calendar_date(value)
        case timedelta() if INTEGER_MIN <= microseconds(value) <= INTEGER_MAX:
            return duration(value)
        case Decimal() if value.is_finite():
            return literal(format(value, "f"), XSD_DECIMAL)
        case _ if (number := _numpy_scalar(value)) is not None:
            return from_python(number)
        case _:
            raise LoadProblem(Diagnostic("T002", _why_no_term(value), _TERM_TYPES))


def to_python(term: Term) -> Value | Term:
    """Return a literal's value as a Python value, and any other term unchanged."""
    value = value_of(term)
    return term if value is None else value


def _is_well_formed(text: str) -> bool:
    return text.isascii() or not _SURROGATE.search(text)


def _numpy_scalar(value: object) -> float | None:
    # A NumPy scalar, recognised by its attributes so that NumPy need not be loaded.
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    item = getattr(value, "item", None)
    if getattr(value, "shape", None) != () or item is None:
        return None
    read = {"b": bool, "i": int, "u": int, "f": float}.get(kind)
    return None if read is None else read(item())


def _in_utc(value: datetime) -> datetime | None:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return None


def _in_64_bits(text: str) -> bool:
    # Leading zeros are allowed; the length check avoids parsing a megabyte of digits.
    digits = text.lstrip("+-").lstrip("0")
    return bool(_INTEGER.fullmatch(text)) and len(digits) <= 19 and INTEGER_MIN <= _int(text) <= INTEGER_MAX


def _int(text: str) -> int:
    # Python refuses to read thousands of leading zeros.
    digits = int(text.lstrip("+-").lstrip("0") or "0")
    return -digits if text[0] == "-" else digits


def _finite(text: str, form: re.Pattern[str]) -> float | None:
    number = float(text) if form.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def _double_text(value: float) -> str:
    # The shortest digits that read back as the same double, in XSD's canonical form: 2.55E1.
    if value == 0:
        return "0.0E0"
    mantissa, _, power = float.__repr__(value).partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole if fraction == "0" else whole + fraction
    leading = digits.lstrip("0")
    exponent = int(power or 0) + len(whole) - 1 - (len(digits) - len(leading))
    significant = leading.rstrip("0")
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{exponent}"


def _decimal_text(value: float) -> str:
    # A decimal's value is its nearest double, so that double's shortest digits are its form.
    text = format(Decimal(float.__repr__(value + 0.0)).normalize(), "f")
    if value == 0:
        return "0.0"
    return text if "." in text else text + ".0"


def _parse_date_time(text: str) -> datetime | None:
    parsed = _DATETIME.fullmatch(text)
    if not parsed:
        return None
    year, month, day, hour, minute, second = (int(g) for g in parsed.groups()[:6])
    fraction, zone = parsed.group(7), parsed.group(8)
    midnight = hour == 24 and minute == second == 0 and not (fraction or "").strip(".0")
    try:
        moment = datetime(year, month, day, 0 if midnight else hour, minute, second, tzinfo=UTC)
        if midnight:
            moment += timedelta(days=1)
        if fraction:
            moment += timedelta(microseconds=round(Decimal(fraction) * 1_000_000))
        if zone and zone != "Z":
            hours, minutes = int(zone[1:3]), int(zone[4:6])
            if hours > 14 or minutes > 59 or (hours == 14 and minutes):
                return None
            shift = timedelta(hours=hours, minutes=minutes)
            moment = moment - shift if zone[0] == "+" else moment + shift
    except (ValueError, OverflowError):
        return None
    return moment


def _parse_date(text: str) -> date | None:
    parsed = _DATE.fullmatch(text)
    try:
        return date.fromisoformat(parsed.group(1)) if parsed else None
    except ValueError:
        return None


def _parse_duration(text: str) -> timedelta | None:
    parsed = _DURATION.fullmatch(text)
    if not parsed or len(text) > _LONGEST_DURATION:
        return None
    days, hours, minutes = (int(group or 0) for group in parsed.groups()[1:4])
    fraction = round(Decimal(parsed.group(5) or 0) * 1_000_000)
    total = ((days * 24 + hours) * 60 + minutes) * 60_000_000 + fraction
    total = -total if parsed.group(1) else total
    return timedelta(microseconds=total) if INTEGER_MIN <= total <= INTEGER_MAX else None


def _duration_text(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    shown = f"{second}.{fraction:06d}".rstrip("0") if fraction else str(second or "")
    parts = [f"{number}{unit}" for number, unit in ((hour, "H"), (minute, "M"), (shown, "S")) if number]
    day = f"{days}D" if days else ""
    clock = f"T{''.join(parts)}" if parts else ""
    return f"{'-' if micros < 0 else ''}P{day}{clock}" if day or clock else "PT0S"


def _why_no_term(value: object) -> str:
    match value:
        case IRITemplate():
            return f"{value.value!r} is a template, and makes terms of the rows of a table only"
        case str() | Literal():
            return "a string holds half of a surrogate pair"
        case timedelta():
            return f"{value!r} is longer than 64 bits of microseconds"
        case datetime():
            return f"{value!r} is before the year 1 or after 9999 in UTC"
        case int() | float() | Decimal():
            return f"{value!r} is no 64-bit integer and no finite number"
        case None:
            return "None is not a term"
        case _:
            return f"a {type(value).__name__} is not a term"
