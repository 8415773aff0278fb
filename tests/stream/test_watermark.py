"""The watermark of docs/semantics.md, section 1, over marks and a clock."""

from estream.stream.watermark import BEGINNING, OVER, Mark, Progress, Timing, active, advance, beats

SECOND = 1_000_000
ONE = {"S": Timing(delay=10, idle_after=None)}
TWO = {"S": Timing(10, 30 * SECOND), "T": Timing(5, 60 * SECOND)}


def after(timings: dict[str, Timing], *batches: tuple[list[Mark], int | None], held: int | None = None) -> Progress:
    """The progress after micro-batches, each of marks and a clock in seconds."""
    progress = Progress()
    for marks, clock in batches:
        progress = advance(progress, timings, marks, None if clock is None else clock * SECOND, held)
    return progress


def test_it_follows_the_greatest_time_by_the_delay_and_never_goes_back() -> None:
    assert after(ONE, ([Mark("S", 0, 100)], None)).watermark == 90
    assert after(ONE, ([Mark("S", 0, 100)], None), ([Mark("S", 20, 50)], None)).watermark == 90


def test_it_is_the_least_over_the_sources() -> None:
    assert after(TWO, ([Mark("S", 0, 100), Mark("T", 0, 70)], None)).watermark == 65


def test_a_source_that_gave_nothing_yet_holds_it_until_it_is_idle() -> None:
    begun = [([Mark("S", 0, 100)], 0), ([Mark("S", 0, 200)], 50)]
    assert after(TWO, *begun).watermark == BEGINNING
    assert after(TWO, *begun, ([Mark("S", 0, 300)], 60)).watermark == 290


def test_an_idle_source_holds_nobody_up() -> None:
    batches = [([Mark("S", 0, 100), Mark("T", 0, 50)], 0), ([Mark("T", 0, 500)], 29), ([], 30)]
    assert after(TWO, *batches[:2]).watermark == 90
    idle = after(TWO, *batches)
    assert active(idle, TWO) == ("T",)
    assert idle.watermark == 495


def test_where_all_are_idle_time_goes_on_by_the_clock() -> None:
    timings = {"S": Timing(10, 30 * SECOND)}
    begun = [([Mark("S", 0, 100)], 5), ([], 34)]
    assert after(timings, *begun).watermark == 90
    assert after(timings, *begun, ([], 45)).watermark == 90 + 40 * SECOND


def test_sources_that_all_fell_idle_between_two_micro_batches_let_time_go_on_from_the_last_one_active() -> None:
    seen = [Mark("S", 0, 100), Mark("T", 0, 50)]
    assert after(TWO, (seen, 5), ([], 100)).watermark == 45 + 95 * SECOND
    assert after(TWO, (seen[:1], 5), ([], 100)).watermark == 90 + 95 * SECOND
    assert after(TWO, ([], 5), ([], 100)).watermark == BEGINNING


def test_without_a_clock_nothing_is_idle() -> None:
    assert after(TWO, ([Mark("S", 0, 100)], None), ([], None), ([], None)).watermark == BEGINNING


def test_what_spark_holds_back_is_waited_for() -> None:
    assert after(ONE, ([Mark("S", 0, 100)], None), held=40).watermark == 40


def test_a_stream_that_left_the_file_is_forgotten() -> None:
    both = advance(Progress(), TWO, [Mark("S", 0, 100), Mark("T", 0, 50)], None, None)
    assert advance(both, ONE, [], None, None).watermark == 90


def test_the_first_row_is_settled_once_the_watermark_has_passed_it() -> None:
    assert after(ONE, ([Mark("S", 100, 105)], None), ([Mark("S", 97, 105)], None)).first == 97
    assert after(ONE, ([Mark("S", 100, 200)], None), ([Mark("S", 3, 200)], None)).first == 100


WITH_DERIVED = {"S": Timing(10, 30 * SECOND), "Later": Timing(10, 1, is_derived=True)}


def test_a_derived_stream_holds_time_back_but_never_moves_it() -> None:
    seen = [Mark("S", 0, 100), Mark("Later", 1_000, 1_000)]
    assert after(WITH_DERIVED, (seen, 0)).watermark == 90
    assert after(WITH_DERIVED, (seen, 0), ([Mark("S", 0, 5_000)], 1)).watermark == 990
    assert after(WITH_DERIVED, (seen[:1], 0)).watermark == BEGINNING


def test_where_all_but_derived_streams_are_idle_time_goes_on_by_the_clock_as_far_as_they_have_come() -> None:
    seen = [Mark("S", 0, 100), Mark("Later", 35 * SECOND, 35 * SECOND)]
    late = after(WITH_DERIVED, (seen, 0), ([], 31))
    assert late.watermark == 90 + 31 * SECOND
    held = after(WITH_DERIVED, (seen, 0), ([], 40))
    assert held.watermark == 35 * SECOND - 10
    assert beats(held, WITH_DERIVED) == {"S": 100 + 40 * SECOND}
    assert advance(held, WITH_DERIVED, [Mark("Later", OVER, OVER)], 40 * SECOND, None).watermark == 90 + 40 * SECOND


def test_what_a_derived_stream_says_is_no_first_row() -> None:
    assert after(WITH_DERIVED, ([Mark("S", 50, 100), Mark("Later", 7, 7)], None)).first == 50
