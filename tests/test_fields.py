# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import SERIES, record

from rtproof.record.contents import Series
from rtproof.summary.fields import judged_series, series_by_field


def thread_fields(thread: int, *fields: str) -> list[Series]:
    number = len(fields)
    return [replace(SERIES, id=thread * number + at, thread=thread, field=field) for at, field in enumerate(fields)]


def test_a_record_with_one_field_has_all_threads_in_it() -> None:
    series = [*thread_fields(0, "latency"), *thread_fields(1, "latency")]
    assert series_by_field(record([], series)) == (tuple(series),)
    assert judged_series(record([], series)) == tuple(series)


def test_threads_need_not_agree_on_the_name_of_their_only_field() -> None:
    series = [*thread_fields(0, "latency"), *thread_fields(1, "delay")]
    assert judged_series(record([], series)) == tuple(series)


def test_the_last_field_of_each_thread_is_the_one_judged() -> None:
    first, second = thread_fields(0, "irq", "thread", "user"), thread_fields(1, "irq", "thread", "user")
    made = record([], [*first, *second])
    assert series_by_field(made) == tuple(zip(first, second, strict=True))
    assert judged_series(made) == (first[2], second[2])


def test_of_a_thread_that_lacks_its_last_field_no_other_is_judged() -> None:
    first, second = thread_fields(0, "irq", "task"), thread_fields(1, "irq", "task")[:1]
    assert judged_series(record([], [*first, *second])) == (first[1],)


def test_a_record_without_series_has_nothing_to_judge() -> None:
    assert series_by_field(record([], ())) == ()
    assert judged_series(record([], ())) == ()
