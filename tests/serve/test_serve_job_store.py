"""Jobs that are kept: bounded in number, bytes and time, each for its owner, with tickets that the test answers."""

from __future__ import annotations

import asyncio
import json

import pytest

from routelearn.serve.batching import Asked, Ticket
from routelearn.serve.job_store import IN_MEMORY, RECORD, Jobs
from routelearn.serve.limits import Limits, Refused
from routelearn.serve.metrics import Metrics
from routelearn.serve.tokens import Caller, Token

ANN, BEN = Caller(Token("ann", "")), Caller(Token("ben", "", jobs=2))
ANYBODY = Caller(Token("", ""))  # where no tokens are asked for


class Kept:
    """A store, and the tickets of its jobs."""

    def __init__(self, **limits):
        self.cancelled, self.tickets = [], {}
        self.jobs = Jobs(Limits(**limits), Metrics(), self.cancelled.append)

    def begin(self, caller=ANN, body=100, kind="solve", several=False, count=1):
        def ask(job):
            loop = asyncio.get_running_loop()
            self.tickets[job.id] = [Ticket(row, "job", {}, "", loop.create_future(), job.hear) for row in range(count)]
            return Asked(kind, self.tickets[job.id], several)

        return self.jobs.begin(caller, kind, body, ask)

    async def answer(self, job, *answers):
        for ticket, answer in zip(self.tickets[job.id], answers, strict=True):
            ticket.answer.set_result(answer)
        for _ in range(3):
            await asyncio.sleep(0)


def run(test):
    asyncio.run(test())


def refused(call):
    with pytest.raises(Refused) as told:
        call()
    return told.value.status, told.value.limit


def test_a_job_goes_from_queued_to_done_with_its_best_cost_on_the_way():
    async def test():
        kept = Kept()
        job = kept.begin()
        assert (job.state, job.cost) == ("queued", None)
        [ticket] = kept.tickets[job.id]
        ticket.started = 1.0
        job.hear(b"7.5")
        job.hear(b"9")  # of a second attempt, after the first one's worker died
        assert (job.state, job.cost) == ("running", 7.5)
        await kept.answer(job, (200, {"cost": b"7.25", "json": b'{"cost":7.25}', "csv": b"a,b"}))
        document = json.loads(job.document())
        assert (document["state"], document["cost"], document["answer"]) == ("done", 7.25, {"cost": 7.25})
        assert document["failure"] is None
        assert job.answers["csv"] == b"a,b"
        assert job.asked is None, "the request is not kept"

    run(test)


def test_a_batch_of_many_tickets_is_one_answer_and_fails_with_the_first_that_does():
    async def test():
        kept = Kept()
        good, bad = (kept.begin(kind="batch", several=True, count=2) for _ in range(2))
        await kept.answer(good, (200, b"1"), (200, b"2"))
        await kept.answer(bad, (200, b"1"), (422, b'{"error":"no"}'))
        assert json.loads(good.document())["answer"] == {"answers": [1, 2]}
        told = json.loads(bad.document())
        assert (told["state"], told["answer"], told["failure"]) == ("failed", None, {"error": "no"})

    run(test)


def test_ids_cannot_be_guessed_and_jobs_of_others_are_not_there():
    async def test():
        kept = Kept()
        mine, theirs = kept.begin(ANN), kept.begin(BEN)
        assert len(mine.id) >= 22, "128 bits"
        assert kept.jobs.find(ANN, mine.id) is mine
        for caller, name in ((BEN, mine.id), (ANN, theirs.id), (ANN, "nothing"), (Caller(), mine.id)):
            assert refused(lambda caller=caller, name=name: kept.jobs.find(caller, name)) == (404, None)
        assert kept.jobs.of(ANN) == [mine]

    run(test)


def test_the_oldest_finished_job_makes_room_and_unfinished_ones_never_do():
    async def test():
        kept = Kept(keep_jobs=3)
        first, second, third = (kept.begin(ANYBODY) for _ in range(3))
        assert refused(lambda: kept.begin(ANYBODY)) == (429, "keep_jobs")
        await kept.answer(second, (200, b"2"))
        await kept.answer(first, (200, b"1"))
        fourth = kept.begin(ANYBODY)
        assert refused(lambda: kept.jobs.find(ANYBODY, second.id)) == (404, None), "it ended first"
        assert [job.id for job in kept.jobs.of(ANYBODY)] == [fourth.id, third.id, first.id]

    run(test)


def test_who_keeps_most_makes_room_and_not_who_came_first():
    async def test():
        kept = Kept(keep_jobs=3)
        theirs = kept.begin(BEN)
        await kept.answer(theirs, (200, b"1"))
        for _ in range(9):
            await kept.answer(kept.begin(ANN), (200, b"1"))
        assert kept.jobs.find(BEN, theirs.id) is theirs

    run(test)


def test_one_token_leaves_room_for_others_and_its_waiting_jobs_push_out_nobodys_answer():
    async def test():
        kept = Kept(keep_jobs=8)
        mine = [kept.begin(ANN) for _ in range(4)]
        assert refused(lambda: kept.begin(ANN)) == (429, "keep_jobs"), "half of the places"
        theirs = kept.begin(BEN)
        await kept.answer(theirs, (200, b"1"))
        await kept.answer(mine[0], (200, b"1"))
        for _ in range(9):  # ann's own answers make room, although ben's is the oldest
            await kept.answer(kept.begin(ANN), (200, b"1"))
        assert kept.jobs.find(BEN, theirs.id) is theirs
        many = Kept(keep_megabytes=1)
        many.begin(ANN, body=40_000)
        assert refused(lambda: many.begin(ANN, body=40_000)) == (429, "keep_megabytes")
        many.begin(BEN, body=40_000)

    run(test)


def test_who_keeps_less_is_not_pushed_out_by_jobs_that_wait():
    async def test():
        kept = Kept(keep_jobs=4)
        theirs = [kept.begin(BEN) for _ in range(2)]
        theirs.append(kept.begin(ANYBODY))
        for job in theirs:
            await kept.answer(job, (200, b"1"))
        kept.begin(ANN, body=5000)
        assert refused(lambda: kept.begin(ANN, body=5000)) == (429, "keep_jobs")
        assert list(kept.jobs.finished.values()) == theirs
        kept.begin(BEN)
        assert list(kept.jobs.finished.values()) == theirs[1:], "one's own answers make room"

    run(test)


def test_bytes_are_bounded_of_requests_that_wait_and_of_answers():
    async def test():
        kept = Kept(keep_megabytes=1)
        first = kept.begin(ANYBODY, body=40_000)
        assert kept.jobs.bytes == 40_000 * IN_MEMORY + RECORD
        second = kept.begin(ANYBODY, body=40_000)
        assert refused(lambda: kept.begin(ANYBODY, body=40_000)) == (429, "keep_megabytes")
        await kept.answer(first, (200, b"1" * 300_000))
        await kept.answer(second, (200, b"2" * 300_000))
        third = kept.begin(ANYBODY, body=40_000)  # 0.4 MB: one of the answers makes room
        assert kept.jobs.of(ANYBODY) == [third, second]
        await kept.answer(third, (200, b"3" * 999_500))
        assert kept.jobs.of(ANYBODY) == [third]
        told = json.loads(third.document())
        assert (told["state"], told["failure"]["limit"]) == ("failed", "keep_megabytes"), "it would fit in no store"
        assert refused(lambda: kept.begin(ANYBODY, body=200_000)) == (422, "keep_megabytes")
        kept.jobs.remove(third)
        assert (kept.jobs.bytes, kept.jobs.kept) == (0, {})

    run(test)


def test_a_finished_job_is_forgotten_in_time():
    async def test():
        kept = Kept(keep_seconds=0.01)
        done, waiting = kept.begin(), kept.begin()
        await kept.answer(done, (200, b"1"))
        await asyncio.sleep(0.05)
        assert kept.jobs.of(ANN) == [waiting]

    run(test)


def test_delete_cancels_what_waits_and_forgets_what_ended():
    async def test():
        kept = Kept()
        job = kept.begin()
        tickets = kept.tickets[job.id]
        kept.jobs.remove(job)
        assert kept.cancelled == tickets
        tickets[0].answer.cancel()
        await asyncio.sleep(0)
        assert job.state == "cancelled"
        kept.jobs.remove(job)
        assert kept.jobs.of(ANN) == []

    run(test)


def test_a_token_has_no_more_unfinished_jobs_than_its_own():
    async def test():
        kept = Kept()
        first, _ = kept.begin(BEN), kept.begin(BEN)
        assert refused(lambda: kept.begin(BEN)) == (429, "jobs")
        kept.begin(ANN)
        await kept.answer(first, (200, b"1"))
        kept.begin(BEN)

    run(test)


def test_a_request_that_is_refused_leaves_nothing_behind():
    async def test():
        kept = Kept()

        def full(job):
            raise Refused(429, "full", limit="queue")

        assert refused(lambda: kept.jobs.begin(ANN, "solve", 10, full)) == (429, "queue")
        assert (kept.jobs.bytes, kept.jobs.kept) == (0, {})

    run(test)


@pytest.mark.extra
def test_what_the_end_of_the_service_leaves_unfinished_has_failed_with_the_reason():
    pytest.importorskip("fastapi")
    from routelearn.serve.app import create_app
    from routelearn.serve.service import Service

    async def test():
        app = create_app()
        service: Service = app.state.service
        async with app.router.lifespan_context(app):
            ticket = service.pool.submit("long", "job", {"seconds": 1}, "")
            job = service.jobs.begin(ANN, "solve", 10, lambda _: Asked("solve", [ticket]))
        told = json.loads(job.document())
        assert (told["state"], told["failure"]["error"]) == ("failed", "the service is shutting down")

    run(test)
