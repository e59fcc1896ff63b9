"""Routes of jobs: requests whose answers are fetched later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.responses import JSONResponse, Response

from routelearn.serve import formats
from routelearn.serve import schemas as s
from routelearn.serve.job_store import Job
from routelearn.serve.limits import Refused
from routelearn.serve.routes.table import ALWAYS, FAILURES, Table, failures, typed
from routelearn.serve.service import caller_of, response

NOT_HERE = (
    "jobs are kept by one service, and this one runs as several replicas, which do not know of each other's; "
    "use /solve, or start it with one replica"
)
Name = Annotated[str, Path(description="as the answer to POST /jobs has it")]
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "of the job, relative to this path"}}


def add(table: Table, *, here: bool) -> None:
    """`here`: whether this application can keep jobs."""
    service = table.service

    def allowed() -> None:
        if not here:
            raise Refused(501, NOT_HERE)

    @table.taking(
        "/jobs", response_model=s.Job, status_code=202,
        responses=FAILURES | failures(501) | {202: {"description": "it is queued", "headers": LOCATION}},
    )  # fmt: skip
    async def create_job(request: Request, fields: dict[str, Any]) -> Response:
        """Begin a job: the body of `/solve` or of `/solve/batch`. It goes on if the client leaves."""
        allowed()
        kind = s.job_kind_of(fields)
        job = service.jobs.begin(
            caller_of(request), "solve" if kind == "columns" else kind, len(await request.body()),
            lambda job: service.ask(request, fields, formats.EVERY, job.hear),
        )  # fmt: skip
        return told(job, 202, {"location": f"jobs/{job.id}"})

    @table.get("/jobs", response_model=s.JobList, responses=failures(*ALWAYS, 403, 501))
    async def list_jobs(request: Request) -> Response:
        """One's own jobs: those of the token, without their answers."""
        allowed()
        caller = caller_of(request)
        if not caller.name:
            raise Refused(403, "no token is asked for here, so nobody's jobs can be listed; ask for each by its id")
        return JSONResponse({"jobs": [job.record() for job in service.jobs.of(caller)]})

    @table.get(
        "/jobs/{id}", response_model=s.Job,
        responses=failures(*ALWAYS, 404, 406, 409, 501) | typed(*formats.OF_ROUND, what="the job"),
    )  # fmt: skip
    async def get_job(request: Request, id: Name) -> Response:
        """The state of a job, and its answer when it is done; in another type than JSON the answer alone."""
        allowed()
        job = service.jobs.find(caller_of(request), id)
        possible: Sequence[str] = tuple(job.answers)
        if job.how != "done":
            possible = {"round": formats.OF_ROUND, "solve": formats.OF_COLUMNS}.get(job.kind, ())
        form = formats.chosen(request.headers.get("accept"), tuple(dict.fromkeys((formats.JSON, *possible))))
        if form == formats.JSON:
            return told(job, 200)
        if not job.how:
            raise Refused(409, f"the job is {job.state}; its answer in that type is there when it is done")
        if job.how != "done":
            why = f"the state of the job is {job.state}: it has no answer; {formats.MEDIA[formats.JSON]} says why"
            raise Refused(409, why, retry_after=None)
        return response(200, job.answers[form], form)

    @table.delete("/jobs/{id}", status_code=204, responses=failures(*ALWAYS, 404, 501))
    async def delete_job(request: Request, id: Name) -> Response:
        """Cancel a job that has not ended, which stays as cancelled; forget one that has."""
        allowed()
        service.jobs.remove(service.jobs.find(caller_of(request), id))
        return Response(status_code=204)


def told(job: Job, status: int, headers: dict[str, str] | None = None) -> Response:
    kept = {"vary": "accept", "cache-control": "no-store"} | (headers or {})
    return Response(job.document(), status, media_type=formats.MEDIA[formats.JSON], headers=kept)
