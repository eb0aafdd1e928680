"""Points in time and durations of RIF: by example, and by law."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.functions.rif.spaces import same
from squall.rdf import Term
from tests.rif_calls import A, Result, assert_total_order, call, check, of


def at(lexical: str) -> Term:
    """Returns a dateTime, date or time, whichever the text is."""
    return of(lexical, "dateTime" if "T" in lexical else "time" if ":" in lexical[:3] else "date")


def dtd(lexical: str) -> Term:
    return of(lexical, "dayTimeDuration")


def ymd(lexical: str) -> Term:
    return of(lexical, "yearMonthDuration")


def dec(lexical: str) -> Term:
    return of(lexical, "decimal")


NOON, DAY, MONTH = at("1999-05-31T13:20:10.50-05:00"), dtd("P1D"), ymd("P1M")


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("year-from-dateTime", (NOON,), of(1999)), ("month-from-dateTime", (NOON,), of(5)),
        ("day-from-dateTime", (NOON,), of(31)), ("hours-from-dateTime", (NOON,), of(13)),
        ("minutes-from-dateTime", (NOON,), of(20)), ("seconds-from-dateTime", (NOON,), dec("10.5")),
        ("year-from-dateTime", (at("1999-12-31T24:00:00"),), of(2000)),
        ("hours-from-dateTime", (at("1999-12-31T24:00:00"),), of(0)),
        ("day-from-dateTime", (at("1999-12-31T23:30:00-05:00"),), of(31)),
        ("year-from-dateTime", (at("-0044-03-15T00:00:00"),), of(-44)),
        ("year-from-dateTime", (of("2000-01-01T00:00:00Z", "dateTimeStamp"),), of(2000)),
        ("year-from-dateTime", (at("1999-05-31"),), None), ("year-from-dateTime", (A,), None),
        ("year-from-date", (at("1999-05-31"),), of(1999)), ("month-from-date", (at("1999-05-31+05:00"),), of(5)),
        ("day-from-date", (at("2000-01-01+05:00"),), of(1)), ("day-from-date", (NOON,), None),
        ("hours-from-time", (at("01:23:00+05:00"),), of(1)), ("minutes-from-time", (at("13:59:00Z"),), of(59)),
        ("seconds-from-time", (at("13:20:10.5"),), dec("10.5")), ("hours-from-time", (at("24:00:00"),), of(0)),
        ("hours-from-time", (NOON,), None),
        ("years-from-duration", (ymd("P20Y15M"),), of(21)), ("years-from-duration", (ymd("-P15M"),), of(-1)),
        ("years-from-duration", (dtd("-P2DT15H"),), of(0)), ("months-from-duration", (ymd("P20Y15M"),), of(3)),
        ("months-from-duration", (ymd("-P20Y18M"),), of(-6)), ("days-from-duration", (dtd("P3DT10H"),), of(3)),
        ("days-from-duration", (dtd("P3DT55H"),), of(5)), ("days-from-duration", (ymd("P3Y5M"),), of(0)),
        ("days-from-duration", (dtd("-P3DT10H"),), of(-3)), ("hours-from-duration", (dtd("PT123H"),), of(3)),
        ("hours-from-duration", (dtd("-P3DT10H"),), of(-10)), ("minutes-from-duration", (dtd("P3DT10H"),), of(0)),
        ("minutes-from-duration", (dtd("-P5DT12H30M"),), of(-30)), ("minutes-from-duration", (dtd("-PT30S"),), of(0)),
        ("seconds-from-duration", (dtd("P3DT10H12.5S"),), dec("12.5")),
        ("seconds-from-duration", (dtd("-PT256.5S"),), dec("-16.5")),
        ("seconds-from-duration", (dtd(f"PT61.{'1' * 40}S"),), dec(f"1.{'1' * 40}")),
        ("seconds-from-duration", (ymd("P1Y"),), dec("0")),
        ("years-from-duration", (of("P1Y2M3D", "duration"),), of(1)), ("years-from-duration", (NOON,), None),
        ("timezone-from-dateTime", (NOON,), dtd("-PT5H")),
        ("timezone-from-dateTime", (at("2000-01-01T00:00:00"),), None),
        ("timezone-from-dateTime", (at("2000-01-01T00:00:00Z"),), dtd("PT0S")),
        ("timezone-from-date", (at("1999-05-31-05:00"),), dtd("-PT5H")), ("timezone-from-date", (NOON,), None),
        ("timezone-from-time", (at("13:20:00+14:00"),), dtd("PT14H")), ("timezone-from-time", (at("13:20:00"),), None),
    ],
)  # fmt: skip
def test_splits(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("subtract-dateTimes", (at("2000-10-30T06:12:00-05:00"), at("1999-11-28T09:00:00Z")), dtd("P337DT2H12M")),
        ("subtract-dateTimes", (at("2000-01-01T00:00:00"), at("2000-01-01T00:00:00-01:00")), dtd("-PT1H")),
        ("subtract-dateTimes", (at("2000-01-01T00:00:00.75"), at("2000-01-01T00:00:00.5")), dtd("PT0.25S")),
        ("subtract-dateTimes", (at("2000-01-01"), at("2000-01-01")), None),
        ("subtract-dates", (at("2000-10-30"), at("1999-11-28")), dtd("P337D")),
        ("subtract-dates", (at("2000-10-30+05:00"), at("1999-11-28Z")), dtd("P336DT19H")),
        ("subtract-dates", (at("2000-10-15-05:00"), at("2000-10-10+02:00")), dtd("P5DT7H")),
        ("subtract-dates", (at("2000-10-15"), at("2000-10-10+02:00")), dtd("P5DT2H")),
        ("subtract-times", (at("11:12:00Z"), at("04:00:00")), dtd("PT7H12M")),
        ("subtract-times", (at("11:00:00-05:00"), at("21:30:00+05:30")), dtd("PT0S")),
        ("subtract-times", (at("17:00:00-06:00"), at("08:00:00+09:00")), dtd("P1D")),
        ("subtract-times", (at("24:00:00"), at("23:59:59")), dtd("-PT23H59M59S")),
        ("add-yearMonthDurations", (ymd("P2Y11M"), ymd("P3Y3M")), ymd("P6Y2M")),
        ("add-yearMonthDurations", (ymd("P2Y11M"), DAY), None),
        ("add-yearMonthDurations", (MONTH, dtd("PT0S")), MONTH), ("add-yearMonthDurations", (MONTH, of(1)), None),
        ("subtract-yearMonthDurations", (ymd("P2Y11M"), ymd("P3Y3M")), ymd("-P4M")),
        ("subtract-yearMonthDurations", (MONTH, MONTH), ymd("P0M")),
        ("multiply-yearMonthDuration", (ymd("P2Y11M"), dec("2.3")), ymd("P6Y9M")),
        ("multiply-yearMonthDuration", (ymd("P2Y11M"), of("2.3", "double")), ymd("P6Y9M")),
        ("multiply-yearMonthDuration", (ymd("P2Y11M"), of("2.3", "float")), ymd("P6Y9M")),
        ("multiply-yearMonthDuration", (MONTH, of("NaN", "double")), None),
        ("multiply-yearMonthDuration", (MONTH, dec("-0.5")), ymd("P0M")),
        ("multiply-yearMonthDuration", (MONTH, of("INF", "float")), None),
        ("divide-yearMonthDuration", (ymd("P2Y11M"), dec("1.5")), ymd("P1Y11M")),
        ("divide-yearMonthDuration", (MONTH, of(0)), None),
        ("divide-yearMonthDuration", (MONTH, of("-INF", "double")), ymd("P0M")),
        ("divide-yearMonthDuration-by-yearMonthDuration", (ymd("P3Y4M"), ymd("-P1Y4M")), dec("-2.5")),
        ("divide-yearMonthDuration-by-yearMonthDuration", (ymd("P0M"), MONTH), dec("0")),
        ("divide-yearMonthDuration-by-yearMonthDuration", (MONTH, ymd("P0M")), None),
        ("add-dayTimeDurations", (dtd("P2DT12H5M"), dtd("P5DT12H")), dtd("P8DT5M")),
        ("add-dayTimeDurations", (DAY, MONTH), None),
        ("subtract-dayTimeDurations", (dtd("P2DT12H"), dtd("P1DT10H30M")), dtd("P1DT1H30M")),
        ("multiply-dayTimeDuration", (dtd("PT2H10M"), dec("2.1")), dtd("PT4H33M")),
        ("multiply-dayTimeDuration", (dtd("PT2H10M"), of("2.1", "double")), dtd("PT4H33M")),
        ("multiply-dayTimeDuration", (DAY, A), None),
        ("divide-dayTimeDuration", (dtd("P1DT2H30M10.5S"), dec("1.5")), dtd("PT17H40M7S")),
        ("divide-dayTimeDuration", (DAY, of("INF", "double")), dtd("PT0S")),
        ("divide-dayTimeDuration-by-dayTimeDuration", (dtd("PT1H"), dtd("PT3H")), dec("0." + "3" * 60)),
        ("divide-dayTimeDuration-by-dayTimeDuration", (dtd("P4D"), dtd("P2D")), dec("2")),
        ("divide-dayTimeDuration-by-dayTimeDuration", (DAY, dtd("PT0S")), None),
        ("add-yearMonthDuration-to-dateTime", (at("2000-10-30T11:12:00"), ymd("P1Y2M")), at("2001-12-30T11:12:00")),
        ("add-yearMonthDuration-to-dateTime", (at("2000-10-30T11:12:00"), DAY), None),
        ("add-yearMonthDuration-to-dateTime", (at("2000-01-31T00:00:00Z"), MONTH), at("2000-02-29T00:00:00Z")),
        ("add-yearMonthDuration-to-date", (at("2000-10-30"), ymd("P1Y2M")), at("2001-12-30")),
        ("add-yearMonthDuration-to-date", (at("2000-02-29"), ymd("-P1Y")), at("1999-02-28")),
        ("add-dayTimeDuration-to-dateTime", (at("2000-10-30T11:12:00"), dtd("P3DT1H15M")), at("2000-11-02T12:27:00")),
        ("add-dayTimeDuration-to-date", (at("2004-10-30Z"), dtd("P2DT2H30M0S")), at("2004-11-01Z")),
        ("add-dayTimeDuration-to-date", (at("2004-10-30T00:00:00"), DAY), None),
        ("add-dayTimeDuration-to-time", (at("11:12:00"), dtd("P3DT1H15M")), at("12:27:00")),
        ("add-dayTimeDuration-to-time", (at("23:12:00+03:00"), dtd("P1DT3H15M")), at("02:27:00+03:00")),
        ("subtract-yearMonthDuration-from-dateTime", (at("2000-10-30T11:12:00"), ymd("P1Y2M")),
         at("1999-08-30T11:12:00")),
        ("subtract-yearMonthDuration-from-date", (at("2000-02-29Z"), ymd("P1M")), at("2000-01-29Z")),
        ("subtract-dayTimeDuration-from-dateTime", (at("2000-10-30T11:12:00"), dtd("P3DT1H15M")),
         at("2000-10-27T09:57:00")),
        ("subtract-dayTimeDuration-from-date", (at("2000-10-30"), dtd("P3DT1H15M")), at("2000-10-26")),
        ("subtract-dayTimeDuration-from-time", (at("11:12:00"), dtd("P3DT1H15M")), at("09:57:00")),
        ("subtract-dayTimeDuration-from-time", (at("08:20:00-05:00"), dtd("P23DT10H10M")), at("22:10:00-05:00")),
        ("subtract-dayTimeDuration-from-time", (at("08:20:00-05:00"), MONTH), None),
    ],
)  # fmt: skip
def test_arithmetic(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("dateTime-equal", (at("2002-04-02T12:00:00-01:00"), at("2002-04-02T17:00:00+04:00")), True),
        ("dateTime-equal", (at("2002-04-02T12:00:00"), at("2002-04-02T23:00:00+06:00")), False),
        ("dateTime-equal", (at("2002-04-02T12:00:00"), at("2002-04-02T12:00:00Z")), True),
        ("dateTime-equal", (at("1999-12-31T24:00:00"), at("2000-01-01T00:00:00")), True),
        ("dateTime-equal", (at("2000-01-01T00:00:00.10"), of("2000-01-01T00:00:00.1Z", "dateTimeStamp")), True),
        ("dateTime-equal", (at("2000-01-01"), at("2000-01-01")), False),
        ("dateTime-not-equal", (at("2000-01-01"), at("2000-01-02")), False),
        ("dateTime-less-than", (at("2000-01-01T00:00:00+01:00"), at("2000-01-01T00:00:00")), True),
        ("dateTime-greater-than", (at("12000-01-01T00:00:00"), at("9999-01-01T00:00:00")), True),
        ("date-equal", (at("2004-12-25Z"), at("2004-12-25+07:00")), False),
        ("date-equal", (at("2004-12-25-12:00"), at("2004-12-26+12:00")), True),
        ("date-less-than", (at("2004-12-25Z"), at("2004-12-25-05:00")), True),
        ("date-greater-than", (at("2004-12-25Z"), at("2004-12-25+07:00")), True),
        ("time-equal", (at("08:00:00+09:00"), at("17:00:00-06:00")), False),
        ("time-equal", (at("21:30:00+10:30"), at("06:00:00-05:00")), True),
        ("time-equal", (at("24:00:00+01:00"), at("00:00:00+01:00")), True),
        ("time-less-than", (at("12:00:00"), at("23:00:00+06:00")), True),
        ("time-less-than", (at("11:00:00"), at("17:00:00Z")), True),
        ("time-greater-than", (at("08:00:00+09:00"), at("17:00:00-06:00")), False),
        ("duration-equal", (ymd("P1Y"), ymd("P12M")), True), ("duration-equal", (dtd("PT24H"), DAY), True),
        ("duration-equal", (ymd("P1Y"), dtd("P365D")), False), ("duration-equal", (ymd("P0Y"), dtd("PT0S")), True),
        ("duration-equal", (DAY, of(1)), False), ("duration-not-equal", (ymd("P1Y"), ymd("P1M")), True),
        ("duration-not-equal", (DAY, of("PT24H", "duration")), False), ("duration-not-equal", (DAY, A), False),
        ("yearMonthDuration-less-than", (ymd("P1Y"), ymd("P13M")), True),
        ("yearMonthDuration-less-than", (ymd("P1Y"), dtd("P900D")), False),
        ("yearMonthDuration-greater-than", (dtd("PT0S"), ymd("-P1M")), True),
        ("dayTimeDuration-less-than", (dtd("PT23H"), DAY), True),
        ("dayTimeDuration-greater-than", (MONTH, DAY), False),
    ],
)  # fmt: skip
def test_comparisons(name: str, given: tuple[Term, ...], result: Result) -> None:
    check(name, given, result)


ZONES = st.one_of(st.none(), st.integers(-14 * 60, 14 * 60))
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
SECONDS = st.integers(-(10**9), 10**9)


def zoned(moment: datetime, zone: int | None) -> datetime:
    return moment.replace(tzinfo=timezone(timedelta(minutes=zone or 0)))


def said(moment: datetime, zone: int | None) -> Term:
    return at(zoned(moment, zone).isoformat() if zone is not None else moment.isoformat())


@given(MOMENTS, ZONES, MOMENTS, ZONES)
def test_date_times_are_compared_and_subtracted_as_by_python(
    one: datetime, here: int | None, two: datetime, there: int | None
) -> None:
    left, right = said(one, here), said(two, there)
    assert_total_order("dateTime", left, right)
    assert call("dateTime-less-than", left, right) is (zoned(one, here) < zoned(two, there))
    length = zoned(one, here) - zoned(two, there)
    assert same(call("subtract-dateTimes", left, right), python_duration(length))


def python_duration(length: timedelta) -> Term:
    size = abs(length)
    sign = "-" if length < timedelta() else ""
    return dtd(f"{sign}P{size.days}DT{size.seconds}.{size.microseconds:06}S")


@given(st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)), ZONES, SECONDS)
def test_a_date_time_moved_there_and_back_is_the_same(moment: datetime, zone: int | None, count: int) -> None:
    start, length = said(moment, zone), python_duration(timedelta(seconds=count))
    moved = call("add-dayTimeDuration-to-dateTime", start, length)
    assert same(moved, said(moment + timedelta(seconds=count), zone))
    assert same(call("subtract-dayTimeDuration-from-dateTime", moved, length), start)
    assert same(call("subtract-dateTimes", moved, start), length)
    clock = at(start.partition("T")[2].partition('"')[0])
    moved = call("add-dayTimeDuration-to-time", clock, length)
    assert same(call("subtract-dayTimeDuration-from-time", moved, length), clock)
    assert_total_order("time", moved, clock)


@given(st.dates(), st.integers(-(10**6), 10**6), st.integers(1, 28))
def test_a_date_moved_by_months_and_back_is_the_same(date: object, count: int, day: int) -> None:
    start, length = at(f"{str(date)[:8]}{day:02}"), months(count)
    moved = call("add-yearMonthDuration-to-date", start, length)
    assert same(call("subtract-yearMonthDuration-from-date", moved, length), start)
    assert call("day-from-date", moved) == of(day)
    assert call("date-greater-than", moved, start) is (count > 0)
    assert_total_order("date", moved, start)


def seconds(count: int) -> Term:
    return dtd(f"{'-' if count < 0 else ''}PT{abs(count)}S")


def months(count: int) -> Term:
    return ymd(f"{'-' if count < 0 else ''}P{abs(count)}M")


@given(SECONDS, SECONDS)
def test_laws_of_durations(one: int, two: int) -> None:
    for name, result in (("dayTimeDuration", seconds), ("yearMonthDuration", months)):
        left, right = result(one), result(two)
        total = call(f"add-{name}s", left, right)
        assert total == call(f"add-{name}s", right, left)
        assert same(call(f"subtract-{name}s", total, right), left)
        assert same(call(f"multiply-{name}", left, of(2)), call(f"add-{name}s", left, left))
        assert same(call(f"divide-{name}", call(f"multiply-{name}", left, of(3)), of(3)), left)
        assert_total_order(name, left, right, equalities="duration")
    assert sum_of_parts(seconds(one)) == one


def sum_of_parts(length: Term) -> int:
    sizes = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    result = (str(call(f"{unit}-from-duration", length)) for unit in sizes)
    return sum(int(part.split('"')[1]) * size for part, size in zip(result, sizes.values(), strict=True))
