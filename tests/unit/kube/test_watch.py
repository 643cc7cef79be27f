"""A collection is followed through whatever an API server does: pages, bookmarks, 410, refusals, cuts, nonsense."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.kube.client import UnreachableError
from forecaster.kube.collection import PAGE_ITEMS, Collection
from forecaster.kube.connections import RESPONSE_MAX
from forecaster.kube.objects import MetadataOnly, Scalable
from forecaster.kube.watch import PAUSES, REFUSED_PAUSE, SILENCE_SECONDS, WATCH_SECONDS_RANGE, Watch, lines
from tests.support.api_objects import Answer, ScriptedServer, bookmark, deployment, event, page, played, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from forecaster.kube.collection import Key

PATH = "/apis/apps/v1/deployments"
EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def counts(heard: list[tuple[Key, object, object]] | None = None, clock: Clock | None = None) -> Watch[Scalable, int]:
    """Replicas by Deployment; without randomness."""
    changes, clock = [] if heard is None else heard, clock or Clock()
    return Watch(
        Collection(PATH, Scalable),
        lambda document: document.spec.replicas,
        lambda *change: changes.append(change),
        clock=clock,
        drawn=lambda: 0.0,
        seconds=clock,
    )


def sparing(reduce: Callable[[Scalable], int | None]) -> Watch[Scalable, int]:
    """A watch on a collection that leaves out what is not understood."""
    return Watch(Collection(PATH, Scalable, spares=True), reduce, drawn=lambda: 0.0)


def silent(clock: Clock, first: list[bytes]) -> ScriptedServer:
    """A stream on which nothing more comes, not even its end."""

    class Silent(ScriptedServer):
        def _pieces(self, pieces: Sequence[bytes]) -> Iterator[bytes]:
            yield from pieces
            clock.now += SILENCE_SECONDS
            raise UnreachableError("Read timed out.")

    return Silent.of(first)


def stepped(watch: Any, server: ScriptedServer) -> float:
    """Seconds that the watch waits after one step."""
    waits: float = watch.step(server, threading.Event())
    return waits


class TestList:
    def test_is_read_page_by_page_and_then_followed_from_its_version(self) -> None:
        watch = counts()
        server = played(
            watch,
            page(deployment("a", 1), more="n x"),
            page(deployment("b", 2), version=40),
            [event("MODIFIED", deployment("a", 7, version=41))],
        )
        assert watch.objects == {("shop", "a"): 7, ("shop", "b"): 2}
        assert [request.target.partition("?")[2] for request in server.requests] == [
            f"limit={PAGE_ITEMS}",
            f"limit={PAGE_ITEMS}&continue=n%20x",
            "watch=1&allowWatchBookmarks=true&resourceVersion=40&timeoutSeconds=300",
        ]

    def test_is_not_known_before_its_last_page(self) -> None:
        watch = counts()
        played(watch, page(deployment("a", 1), more="next"))
        assert (watch.synced.is_set(), watch.confirmed()) == (False, 0.0)

    def test_whose_page_is_too_large_is_read_in_smaller_ones(self) -> None:
        watch = counts()
        server = played(watch, UnreachableError("too large", 413), page(deployment("a", 1)))
        assert server.requests[1].target == f"{PATH}?limit={PAGE_ITEMS // 2}"
        assert watch.synced.is_set()

    def test_has_large_pages_again_once_the_large_objects_are_gone(self) -> None:
        watch, large, gone = counts(), UnreachableError("too large", 413), refusal(410)
        server = played(watch, large, large, page(deployment("a", 1)), gone, page(), gone, page(), gone, page())
        targets = [request.target for request in server.requests if "watch" not in request.target]
        assert targets == [f"{PATH}?limit={PAGE_ITEMS // divisor}" for divisor in (1, 2, 4, 2, 1, 1)]

    def test_of_metadata_says_so_and_so_does_its_watch(self) -> None:
        sets = Collection("/apis/apps/v1/replicasets", MetadataOnly, metadata_only=True)
        watch: Watch[MetadataOnly, str] = Watch(sets, lambda document: document.metadata.uid)
        server = played(watch, page(), [])
        forms = [request.accept.partition("as=")[2].partition(";")[0] for request in server.requests]
        assert forms == ["PartialObjectMetadataList", "PartialObjectMetadata"]

    def test_without_items_is_empty(self) -> None:
        watch = counts()
        played(watch, page())
        assert watch.synced.is_set()

    def test_without_a_version_is_asked_for_again_after_a_pause(self) -> None:
        """A server behind the aggregator may leave it out: there is nothing that a watch could begin with."""
        watch, listed = counts(), page(deployment("a", 1))
        server = ScriptedServer.of(listed._replace(body=listed.body.replace(b'"resourceVersion": "1"', b'"x": "1"', 1)))
        assert stepped(watch, server) > 0.0
        assert "has no version" in watch.health.fault


class TestEvents:
    def test_change_what_is_known_and_are_told_once(self) -> None:
        heard: list[tuple[Key, object, object]] = []
        watch = counts(heard)
        played(
            watch,
            page(deployment("a", 1)),
            [
                event("ADDED", deployment("b", 2)) + event("MODIFIED", deployment("b", 2, version=8)),
                event("MODIFIED", deployment("a", 5)),
                event("DELETED", deployment("b", 2)),
            ],
        )
        assert watch.objects == {("shop", "a"): 5}
        a, b = ("shop", "a"), ("shop", "b")
        assert heard == [(a, None, 1), (b, None, 2), (a, 1, 5), (b, 2, None)]

    def test_that_leave_nothing_take_an_object_away(self) -> None:
        watch = counts()
        played(watch, page(deployment("a", 1)), [event("MODIFIED", deployment("a", None))])
        assert watch.objects == {}

    def test_a_bookmark_moves_on_where_the_next_watch_begins(self) -> None:
        server = played(counts(), page(deployment("a", 1), version=3), [bookmark(90)], [])
        assert "resourceVersion=90&" in server.requests[-1].target

    def test_that_are_not_understood_begin_the_list_anew_and_are_a_fault(self) -> None:
        watch = counts()
        played(watch, page(deployment("a", 1)), [b'{"type":"ADDED","object":{"metadata":[]}}\n'])
        assert "an event is not understood" in watch.health.fault
        assert watch.progress.request().target == f"{PATH}?limit={PAGE_ITEMS}"

    def test_an_object_that_is_not_of_its_kind_is_left_out_and_the_others_go_on(self) -> None:
        """A tenant can write such an object where the definition of a kind leaves the template open."""
        odd = deployment("odd") | {"spec": {"template": {"spec": {"containers": "none"}}}}
        watch = sparing(lambda document: document.spec.replicas)
        played(watch, page(deployment("a", 1), odd, deployment("b", 2)))
        assert watch.objects == {("shop", "a"): 1, ("shop", "b"): 2}
        assert "Expected `array | null`, got `str`" in watch.progress.misread["shop", "odd"]
        assert not watch.health.fault
        played(watch, [event("MODIFIED", odd | {"metadata": odd["metadata"] | {"resourceVersion": "9"}})])
        assert "resourceVersion=9&" in watch.progress.request().target
        played(watch, [event("MODIFIED", deployment("odd", 3))])
        assert (watch.objects["shop", "odd"], watch.progress.misread) == (3, {})
        played(watch, [event("MODIFIED", odd)], [event("DELETED", odd)])
        assert (("shop", "odd") in watch.objects, watch.progress.misread) == (False, {})

    def test_an_object_of_which_nothing_can_be_made_is_left_out(self) -> None:
        watch = sparing(lambda document: {2: 30}[document.spec.replicas])
        played(watch, page(deployment("a", 0), deployment("b", 2)))
        assert (watch.objects, dict(watch.progress.misread)) == (
            {("shop", "b"): 30},
            {("shop", "a"): "KeyError: 0"},
        )

    @given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=9), st.data())
    def test_are_the_same_however_the_stream_is_cut(self, texts: list[bytes], data: st.DataObject) -> None:
        whole = b"".join(text + b"\n" for text in texts)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        assert list(filter(None, lines(iter(pieces)))) == [text for text in texts if text]

    def test_without_end_are_no_event(self) -> None:
        with pytest.raises(UnreachableError, match="more than 8 MiB"):
            list(lines(iter([b"x" * RESPONSE_MAX, b"x"])))


class TestVersionThatIsForgotten:
    @pytest.mark.parametrize("gone", [refusal(410), [EXPIRED]], ids=["when asked", "in the stream"])
    def test_is_listed_anew_and_what_vanished_meanwhile_is_dropped(self, gone: Answer) -> None:
        heard: list[tuple[Key, object, object]] = []
        watch = counts(heard)
        played(watch, page(deployment("a", 1), deployment("b", 2)), gone, page(deployment("b", 3), version=9))
        assert watch.objects == {("shop", "b"): 3}
        assert heard[-2:] == [(("shop", "b"), 2, 3), (("shop", "a"), 1, None)]
        assert watch.health.restarts == 1

    def test_between_two_pages_begins_with_the_first_and_loses_nothing_known(self) -> None:
        watch = counts()
        server = played(watch, page(deployment("a", 1)), [EXPIRED], page(deployment("b", 2), more="x"), refusal(410))
        assert set(watch.objects) == {("shop", "a"), ("shop", "b")}
        assert watch.progress.request().target == f"{PATH}?limit={PAGE_ITEMS}"
        assert len(server.requests) == 4


class TestFailures:
    def test_wait_longer_each_time_and_anew_after_an_answer(self) -> None:
        watch, down = counts(), UnreachableError("down")
        server = ScriptedServer.of(*[down] * 8, page(), down)
        waits = [stepped(watch, server) for _ in range(10)]
        assert waits == [*(pause / 2 for pause in PAUSES), PAUSES[-1] / 2, 0.0, PAUSES[0] / 2]

    def test_of_rights_wait_for_a_person(self) -> None:
        watch = counts()
        server = ScriptedServer.of(refusal(403, "deployments is forbidden"), page())
        assert stepped(watch, server) == REFUSED_PAUSE / 2
        assert (watch.health.refused, watch.synced.is_set()) == (True, False)
        assert "deployments is forbidden" in watch.health.fault
        stepped(watch, server)
        assert (watch.health.refused, watch.health.fault) == (False, "")

    def test_leave_what_is_known_and_its_age(self) -> None:
        clock = Clock()
        watch = counts(clock=clock)
        played(watch, page(deployment("a", 1)))
        clock.now += 30
        played(watch, UnreachableError("down"), refusal(503))
        assert (watch.objects, watch.confirmed()) == ({("shop", "a"): 1}, 1000.0)

    def test_a_stream_confirms_until_it_ends(self) -> None:
        clock, confirmations = Clock(), []
        watch = counts(clock=clock)
        played(watch, page())

        def later() -> None:
            clock.now += 50
            confirmations.append(watch.confirmed())

        server = ScriptedServer.of([])
        server.during = later
        stepped(watch, server)
        clock.now += 5
        assert (confirmations, watch.confirmed()) == ([1050.0], 1050.0)

    def test_a_silent_stream_confirms_nothing_after_its_last_line_and_is_followed_on_from_there(self) -> None:
        """No bookmark comes where nothing has happened since the version of the watch."""
        clock = Clock()
        watch = counts(clock=clock)
        played(watch, page(deployment("a", 1), version=9000))
        stepped(watch, silent(clock, [bookmark(9001)]))
        assert (watch.confirmed(), watch.health.fault) == (1000.0, "")
        server = ScriptedServer.of([], [], [event("MODIFIED", deployment("a", 4, version=9002))], [])
        for _ in range(4):
            stepped(watch, server)
        versions = [request.target.partition("&resourceVersion=")[2] for request in server.requests]
        assert versions == ["9001&timeoutSeconds=80"] * 3 + ["9002&timeoutSeconds=300"]
        assert (watch.objects, watch.confirmed()) == ({("shop", "a"): 4}, 1100.0)

    def test_one_that_is_silent_beyond_its_end_is_listed_anew(self) -> None:
        clock = Clock()
        watch = counts(clock=clock)
        played(watch, page(deployment("a", 1), version=9000))
        stepped(watch, silent(clock, []))
        stepped(watch, silent(clock, []))
        assert "nothing came for 100 s" in watch.health.fault
        server = played(watch, page(deployment("a", 4), version=7))
        assert "resourceVersion" not in server.requests[0].target
        assert (watch.objects, watch.confirmed()) == ({("shop", "a"): 4}, 1200.0)

    def test_of_a_version_that_a_restored_store_does_not_have_begin_the_list_anew(self) -> None:
        watch = counts()
        played(watch, page(deployment("a", 1)), *[refusal(504, "Too large resource version: 9, current: 7")] * 2)
        assert "limit=" in played(watch, page(deployment("b", 1))).requests[0].target

    def test_a_stream_that_is_cut_was_known_until_then(self) -> None:
        clock = Clock()
        watch = counts(clock=clock)
        played(watch, page())

        def cut() -> None:
            clock.now += 50
            raise UnreachableError("reset by peer")

        server = ScriptedServer.of([])
        server.during = cut
        stepped(watch, server)
        assert (watch.confirmed(), watch.progress.listing) == (1050.0, False)

    def test_without_end_begin_the_list_anew(self) -> None:
        """A server that has lost its store may refuse a version for ever, and not by 410."""
        watch = counts()
        played(watch, page(deployment("a", 1)), *[refusal(504, "Too large resource version")] * (len(PAUSES) + 1))
        server = played(watch, page(deployment("b", 1)))
        assert "limit=" in server.requests[0].target
        assert set(watch.objects) == {("shop", "b")}

    def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(self) -> None:
        watch = counts()
        played(watch, page())
        assert stepped(watch, ScriptedServer.of([])) > 0.5

    @pytest.mark.parametrize("code", [410, 500])
    def test_a_server_that_refuses_every_watch_in_its_stream_is_asked_less_and_less(self, code: int) -> None:
        """Without longer pauses each collection sent seven requests a second, lists of all pods among them."""
        watch = counts()
        refused = event("ERROR", {"kind": "Status", "code": code, "message": "a test"})
        listed = page(deployment("a", 1))
        answers = [listed, [refused]] * 12 if code == 410 else [listed, *[[refused]] * 8, listed, *[[refused]] * 14]
        server = ScriptedServer.of(*answers)
        waits = [stepped(watch, server) for _ in answers]
        assert waits[-1] == PAUSES[-1] / 2

    def test_a_list_whose_next_page_always_expires_is_begun_anew_less_and_less(self) -> None:
        watch = counts()
        answers = [page(deployment("a", 1), more="x"), refusal(410, "the provided continue parameter is too old")] * 9
        server = ScriptedServer.of(*answers)
        waits = [stepped(watch, server) for _ in answers]
        assert waits[-1] == PAUSES[-1] / 2

    def test_a_line_without_an_end_ends_with_its_watch(self) -> None:
        clock = Clock()
        watch = counts(clock=clock)
        played(watch, page(deployment("a", 1)))

        class Dripping(ScriptedServer):
            def _pieces(self, pieces: Sequence[bytes]) -> Iterator[bytes]:
                while True:
                    clock.now += 1
                    yield b" "

        stepped(watch, Dripping.of([]))
        assert clock.now < 1000.0 + WATCH_SECONDS_RANGE[1]

    def test_a_page_of_a_proxy_in_place_of_a_stream_is_a_failure(self) -> None:
        watch = counts()
        played(watch, page(deployment("a", 1)), [b"<html>"])
        assert "an event is not understood" in watch.health.fault

    def test_of_our_own_end_no_thread(self) -> None:
        def broken(_one: Scalable) -> int:
            raise ZeroDivisionError

        watch: Watch[Scalable, int] = Watch(Collection(PATH, Scalable), broken, drawn=lambda: 0.0)
        assert stepped(watch, ScriptedServer.of(page(deployment()))) > 0
        assert "ZeroDivisionError" in watch.health.fault
