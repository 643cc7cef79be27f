from __future__ import annotations

import io
import json
from http import HTTPStatus

from forecaster.serving.audit import MAX_KINDS, REPEAT_SECONDS, Audit, Denial

EVE = Denial(HTTPStatus.FORBIDDEN, "cannot list", "cannot list", "eve", "10.0.0.7", "GET /apis")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_denial_is_one_line_however_often_it_comes() -> None:
    out = io.StringIO()
    audit = Audit(out, Clock())
    for _ in range(5):
        audit.denied(EVE)
    line = json.loads(out.getvalue())
    assert line | {"timestamp": ""} == {
        "level": "warning",
        "timestamp": "",
        "event": "request_denied",
        "status": 403,
        "why": "cannot list",
        "user": "eve",
        "client": "10.0.0.7",
        "request": "GET /apis",
    }
    assert audit.denials == {"403": 5}


def test_after_a_while_it_is_said_again() -> None:
    out, clock = io.StringIO(), Clock()
    audit = Audit(out, clock)
    audit.denied(EVE)
    clock.now = REPEAT_SECONDS + 1
    audit.denied(EVE)
    assert len(out.getvalue().splitlines()) == 2


def test_a_thousand_different_ones_do_not_fill_the_log() -> None:
    out = io.StringIO()
    audit = Audit(out, Clock())
    for number in range(3 * MAX_KINDS):
        audit.refused(f"why {number}", "10.0.0.7")
    assert len(out.getvalue().splitlines()) == MAX_KINDS
    assert audit.denials == {"connection": 3 * MAX_KINDS}


def test_a_person_hears_what_is_no_refusal_however_many_there_are() -> None:
    out = io.StringIO()
    audit = Audit(out, Clock())
    for number in range(MAX_KINDS):
        audit.denied(EVE._replace(why=f"cannot get path /{number}"))
    audit.note("writing_paused", lease="forecaster/forecaster", by="eve")
    assert json.loads(out.getvalue().splitlines()[-1])["event"] == "writing_paused"


def test_what_a_client_sent_cannot_make_a_second_line() -> None:
    out = io.StringIO()
    Audit(out, Clock()).denied(EVE._replace(user='x\n{"event":"fine"}'))
    assert len(out.getvalue().splitlines()) == 1
