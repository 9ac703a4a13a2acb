"""`/metrics` for Prometheus: the host's counters, read on request.

Each application has its own registry. No client can choose the value of a label.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_server.host.host import Host
from session_server.host.metrics import Histogram
from session_server.host.persistence.log_status import NOT_THE_DISK, UNKNOWN
from session_server.http.dependencies import caller, services_of
from session_server.identity.failed_credentials import FailedCredentials
from session_server.log import RefusedBecause
from session_server.schemas.errors import NotAllowedError
from session_server.schemas.principals import Provenance

PREFIX = "session_server"
WHY_NOT_STORED = (*(b.value for b in RefusedBecause if b not in NOT_THE_DISK), UNKNOWN)
WHOLE_HOST = "Metrics are of the whole host, and your token is only for some sessions."


class HostCollector(Collector):
    def __init__(self, host: Host, failures: FailedCredentials) -> None:
        self._host = host
        self._failures = failures

    def collect(self) -> Iterator[Metric]:
        host, counts, states = self._host, self._host.counts, self._host.states
        records = [channel.committed for channel in host.sessions.values()]
        requests = sum(len(r.public.input_requests or ()) for r in records if r is not None)
        yield gauge("sessions", "Sessions that the host holds.", len(records))
        loaded = len(records) - states.evicted_sessions
        yield gauge("loaded_sessions", "Sessions that are in memory.", loaded)
        damaged = len(host.unreadable)
        yield gauge("unreadable_sessions", "Sessions that are damaged and not served.", damaged)
        yield gauge("open_requests", "Input requests that wait for an answer.", requests)
        yield gauge("connections", "WebSockets and event streams.", host.connections.number)
        yield gauge("state_bytes", "Session states as JSON, estimated.", states.bytes)
        text = "Session states in memory, as JSON, estimated."
        yield gauge("loaded_state_bytes", text, states.loaded_bytes)
        yield gauge("envelope_bytes", "Envelopes kept for replays.", host.envelopes.bytes)
        yield gauge("position", "The last serverSeq.", host.position)
        is_read_only = host.log_status.reason is not None
        yield gauge("read_only", "1 while the log cannot be written.", is_read_only)
        nodes = 1 if host.nodes is None else host.nodes.number
        yield gauge("nodes", "Nodes that live, as this one knows.", nodes)

        yield counter("entries", "Entries written to the log.", counts.entries)
        yield counter("evictions", "Sessions that have left memory.", counts.evictions)
        yield counter("loads", "Sessions that were read into memory again.", counts.loads)
        yield counter("deliveries", "Envelopes times their subscribers.", counts.deliveries)

        failures = {because: counts.store_failures[because] for because in WHY_NOT_STORED}
        yield labelled("store_failures", "Writes to the log that failed.", "because", failures)
        outcomes = {via: counts.outcomes[via] for via in Provenance}
        yield labelled("outcomes", "Ended input requests.", "via", outcomes)
        yield labelled("refusals", "Refused actions.", "code", counts.refusals)
        resumed = {"replay": counts.replays, "snapshot": counts.snapshots}
        yield labelled("resumed", "Clients that came back, and what they got.", "with", resumed)
        failed = self._failures.counts
        yield labelled("failed_credentials", "Tokens that were refused.", "reason", failed)
        yield labelled("closes", "Connections that the host ended.", "code", counts.closes)

        text = "From append to the log's answer, a batch."
        yield histogram("append_seconds", text, counts.append_seconds)
        text = "From a question to the first sign of an answer."
        yield histogram("first_draft_seconds", text, counts.first_draft_seconds)
        yield histogram("answer_seconds", "From a question to its answer.", counts.answer_seconds)


def gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, value)


def counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{PREFIX}_{name}", text, value)


def labelled(name: str, text: str, label: str, values: Mapping[Any, int]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
    for value, number in values.items():
        family.add_metric([str(value)], number)
    return family


def histogram(name: str, text: str, values: Histogram) -> Metric:
    """Buckets are cumulative, as Prometheus requires."""
    so_far, buckets = 0, []
    for bound, number in zip((*values.bounds, "+Inf"), values.counts, strict=True):
        so_far += number
        buckets.append((str(bound), so_far))
    return HistogramMetricFamily(f"{PREFIX}_{name}", text, buckets, sum_value=values.total)


def include_metrics(app: FastAPI) -> None:
    app.router.routes.append(Route("/metrics", metrics, include_in_schema=False))


async def metrics(request: Request) -> Response:
    """For principals with access to the whole host."""
    if (await caller(request)).is_limited:
        raise NotAllowedError(WHOLE_HOST)
    services = services_of(request)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HostCollector(services.host, services.identities.failures))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
