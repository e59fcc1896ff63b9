"""The pool of workers, with stand-ins for the processes: turns, deaths, and tickets that are to blame for them."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace

import pytest

from routelearn.errors import InputError
from routelearn.serve import worker as process
from routelearn.serve import workers
from routelearn.serve.limits import Limits, Refused
from routelearn.serve.metrics import Metrics


class StandIn:
    """A worker that does nothing by itself: the test speaks for it."""

    def __init__(self, lane, limits, models, hear):
        self.lane, self.ready, self.busy, self.dead, self.tickets = lane, False, False, False, {}
        self.told, self.hear, self.reason = [], hear, ""
        self.out = SimpleNamespace(shutdown=lambda wait: None)
        self.pipe = SimpleNamespace(close=lambda: None)
        self.process = SimpleNamespace(pid=0, exitcode=-9, kill=lambda: self.says("died"), join=lambda _: None)

    def tell(self, kind, content=None):
        self.told.append((kind, content))

    def says(self, *message):
        self.hear(self, message)


def with_pool(story, monkeypatch, **counts):
    """Run the story, an async function of the pool, with stand-ins that are ready."""
    monkeypatch.setattr(workers, "Process", StandIn)

    async def scene():
        pool = workers.Pool(Limits(queue=4), counts or {"long": 1}, Metrics())
        pool.start()
        for worker in [one for lane in pool.workers.values() for one in lane]:
            worker.says("ready")
        await story(pool)
        await pool.close()

    asyncio.run(scene())


@pytest.mark.parametrize("ready_once", [False, True])
def test_a_lane_that_never_starts_is_given_up(monkeypatch, ready_once):
    """With the last worker's own words; one that had a worker is tried for ever."""
    monkeypatch.setattr(workers, "Process", StandIn)
    monkeypatch.setattr(workers, "LONGEST_PAUSE", 0.0)
    told = []

    async def scene():
        pool = workers.Pool(Limits(), {"long": 1}, Metrics())
        pool.give_up = told.append
        pool.start()
        if ready_once:
            pool.workers["long"][0].says("ready")
        for _ in range(workers.TRIES):
            [worker] = pool.workers["long"]
            worker.ready = False
            worker.says("failed", "RuntimeError: no room")
            worker.says("died")
            await asyncio.sleep(0.01)
        await pool.close()

    asyncio.run(scene())
    assert told == (
        [] if ready_once else ["no service worker of the lane long starts, after 4 tries: RuntimeError: no room"]
    )


def test_the_log_says_why_a_worker_died(monkeypatch, caplog):
    async def story(pool):
        first = pool.workers["long"][0]
        first.says("failed", "RuntimeError: cannot cache function")
        first.says("died")
        (await replaced(pool)).says("died")

    with_pool(story, monkeypatch)
    assert "of the lane long died (process 0): RuntimeError: cannot cache function" in caplog.text
    assert "died (process 0): exit status -9" in caplog.text


async def replaced(pool, lane="long"):
    """The next worker of the lane, ready."""
    for _ in range(50):
        await asyncio.sleep(0.01)
        if pool.workers[lane]:
            pool.workers[lane][0].says("ready")
            return pool.workers[lane][0]
    raise AssertionError("nobody took the place of the dead")


def test_a_ticket_whose_worker_died_is_given_to_the_next_and_answered(monkeypatch):
    async def story(pool):
        ticket = pool.submit("long", "solve", {"seconds": 1}, "a")
        [worker] = pool.workers["long"]
        worker.says("died")
        second = await replaced(pool)
        assert second.told == [("tickets", [(ticket.number, "solve", {"seconds": 1})])]
        second.says("done", [(ticket.number, 200, b"{}")])
        assert await ticket.answer == (200, b"{}")

    with_pool(story, monkeypatch)


def test_a_ticket_that_kills_two_workers_is_answered_503_and_the_next_one_served(monkeypatch):
    async def story(pool):
        ticket, other = (pool.submit("long", "solve", {"seconds": 1}, "a") for _ in range(2))
        pool.workers["long"][0].says("died")
        (await replaced(pool)).says("died")
        status, body = await ticket.answer
        assert status == 503
        assert "died twice" in json.loads(body)["error"]
        third = await replaced(pool)
        assert third.told[-1][1][0][0] == other.number

    with_pool(story, monkeypatch)


def test_a_worker_that_dies_before_it_is_ready_is_started_again_after_a_pause(monkeypatch):
    async def story(pool):
        worker = StandIn("long", None, {}, pool._hear)
        pool.workers["long"] = [worker]
        worker.says("died")
        await asyncio.sleep(0.05)
        assert pool.workers["long"] == [], "no storm of processes"

    with_pool(story, monkeypatch)


def test_who_leaves_takes_a_waiting_ticket_along_and_stops_a_running_one(monkeypatch):
    async def story(pool):
        running, waiting = (pool.submit("long", "solve", {"seconds": 1}, "a") for _ in range(2))
        pool.cancel(waiting)
        assert pool.queues["long"].size == 0
        pool.cancel(running)
        assert pool.workers["long"][0].told[-1] == ("cancel", running.number)

    with_pool(story, monkeypatch)


def test_tickets_that_wait_are_handed_over_together_where_batches_are_made(monkeypatch):
    async def story(pool):
        first, *others = (pool.submit("construct", "solve", {}, "a") for _ in range(4))
        [worker] = pool.workers["construct"]
        assert [ticket[0] for ticket in worker.told[-1][1]] == [first.number], "a lone request waits for nothing"
        worker.says("done", [(first.number, 200, b"{}")])
        worker.says("idle")
        assert [ticket[0] for ticket in worker.told[-1][1]] == [ticket.number for ticket in others]

    with_pool(story, monkeypatch, construct=1)


def test_a_second_worker_starts_a_batch_only_where_it_is_worth_a_pass(monkeypatch):
    monkeypatch.setattr(workers, "ENOUGH", 3)

    async def story(pool):
        first, second = pool.workers["construct"]
        pool.submit("construct", "solve", {}, "a")
        pool.submit("construct", "solve", {}, "a")
        assert [len(worker.told) for worker in (first, second)] == [1, 0], "it joins the batch after this one"
        pool.submit("construct", "solve", {}, "a")
        pool.submit("construct", "solve", {}, "a")
        assert len(second.told[-1][1]) == 3
        last = pool.submit("construct", "solve", {}, "a")
        first.says("died")
        assert pool.queues["construct"].size == 2, "the dead one's ticket and the last wait for the busy one"
        second.says("idle")
        assert last.number in [ticket[0] for ticket in second.told[-1][1]], "nobody waits beside an idle worker"

    with_pool(story, monkeypatch, construct=2)


def test_an_idle_worker_of_the_long_lane_helps_with_short_searches(monkeypatch):
    async def story(pool):
        [short], [long] = pool.workers["short"], pool.workers["long"]
        first, second, third = (pool.submit("short", "solve", {"seconds": 1}, "a") for _ in range(3))
        assert [list(worker.tickets) for worker in (short, long)] == [[first.number], [second.number]]
        own = pool.submit("long", "solve", {"seconds": 9}, "a")
        long.says("done", [(second.number, 200, b"{}")])
        long.says("idle")
        assert list(long.tickets) == [own.number], "its own lane comes first"
        short.says("idle")
        assert list(short.tickets) == [third.number]
        other = pool.submit("long", "solve", {"seconds": 9}, "a")
        short.says("idle")
        assert not short.tickets, "short searches would wait for a long one"
        long.says("idle")
        assert list(long.tickets) == [other.number]

    with_pool(story, monkeypatch, short=1, long=1)


def test_what_a_worker_spent_is_counted_to_the_client_in_the_lane_where_it_waited(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: now[0])

    async def story(pool):
        [long] = pool.workers["long"]
        pool.workers["short"][0].ready = False
        ticket = pool.submit("short", "solve", {"seconds": 1}, "a")
        now[0] += 2.0
        long.says("done", [(ticket.number, 200, b"{}")])
        assert pool.queues["short"].owed == {"a": 1.5}
        assert pool.queues["long"].owed == {}

    with_pool(story, monkeypatch, short=1, long=1)


def test_a_short_search_whose_helper_died_waits_in_its_own_lane(monkeypatch):
    async def story(pool):
        [short], [long] = pool.workers["short"], pool.workers["long"]
        first, second = (pool.submit("short", "solve", {"seconds": 1}, "a") for _ in range(2))
        long.says("died")
        assert pool.queues["short"].size == 1
        short.says("done", [(first.number, 200, b"{}")])
        short.says("idle")
        assert list(short.tickets) == [second.number]

    with_pool(story, monkeypatch, short=1, long=1)


def test_a_worker_that_is_replaced_does_not_take_the_service_out(monkeypatch):
    async def story(pool):
        assert pool.serving()
        pool.submit("long", "solve", {"seconds": 1}, "a")
        pool.workers["long"][0].says("died")
        assert not pool.workers["long"]
        assert pool.serving(), "its place is taken in a moment"
        second = (await some(pool))[0]
        second.says("died")
        assert not pool.serving(), "what takes its place cannot start"

    async def some(pool):
        while not pool.workers["long"]:
            await asyncio.sleep(0.01)
        return pool.workers["long"]

    with_pool(story, monkeypatch)


def test_before_the_first_worker_of_each_lane_the_service_is_starting(monkeypatch):
    monkeypatch.setattr(workers, "Process", StandIn)

    async def scene():
        pool = workers.Pool(Limits(), {"short": 1, "long": 1}, Metrics())
        pool.start()
        pool.workers["short"][0].says("ready")
        assert not pool.serving()
        pool.workers["long"][0].says("ready")
        assert pool.serving()
        await pool.close()

    asyncio.run(scene())


def test_what_still_waits_at_the_end_is_answered(monkeypatch):
    tickets = []

    async def story(pool):
        tickets.extend(pool.submit("long", "solve", {"seconds": 1}, "a") for _ in range(3))

    with_pool(story, monkeypatch)
    assert [ticket.answer.result()[0] for ticket in tickets] == [503] * 3


def test_a_full_lane_refuses(monkeypatch):
    async def story(pool):
        for _ in range(5):  # one runs, four wait
            pool.submit("long", "solve", {"seconds": 1}, "a")
        with pytest.raises(Refused, match="the limit queue is 4"):
            pool.submit("long", "solve", {"seconds": 1}, "a")

    with_pool(story, monkeypatch)


def test_a_search_that_ends_while_it_is_cancelled_leaves_the_worker_hearing(monkeypatch):
    class Ending(dict):
        """Searches that end at the very moment somebody looks for them."""

        def __contains__(self, number):
            return self.pop(number, None) is not None

        def get(self, number, default=None):
            self.pop(number, None)
            return default

    messages = iter([("cancel", 5), ("tickets", [(6, "solve", {})])])

    def heard():
        for message in messages:
            return message
        raise EOFError

    def gone(status):
        raise SystemExit(status)

    monkeypatch.setattr(process.os, "_exit", gone)
    deaf = process.ServiceWorker(SimpleNamespace(recv=heard), Limits(), "long")
    deaf.boards = Ending({5: SimpleNamespace(stop=None)})
    with pytest.raises(SystemExit):
        deaf.listen()
    assert deaf.inbox.get_nowait() == [(6, "solve", {})], "the next request is heard of"


def test_a_problem_of_ones_own_neither_stops_a_worker_nor_fills_its_log(monkeypatch, caplog):
    pytest.importorskip("pydantic")
    from routelearn.problems import PROBLEMS

    class Unknown(type(PROBLEMS["tsp"])):
        name = "unknown-to-the-search"

    monkeypatch.setitem(PROBLEMS, Unknown.name, Unknown())
    monkeypatch.setattr(process, "FIRST", len(PROBLEMS) - 1)
    process.warm_others("long")
    assert caplog.text == ""


def test_the_command_says_what_to_install(monkeypatch):
    from routelearn.cli import command

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=r"pip install 'routelearn\[serve\]'"):
        command("serve").main(args=[], standalone_mode=False)
