"""HTTP: the API under `/v1`, its OpenAPI document, the page, and metrics.

api            all routes in one application
dependencies   what routes depend on: the principal, the running services, long polls
gate           the middleware in front: `Host`, `Origin`, proxies
bodies         JSON bodies, ids in paths
idempotency    keys by which a request that is sent again makes nothing twice
problems       errors as problems (RFC 9457): the one mapping to HTTP
session_routes request_routes call_routes token_routes event_routes
streaming      Server-Sent Events and long polls, bounded
openapi        the OpenAPI document and `/docs`
page           the files of the page
prometheus     `/metrics`
"""
