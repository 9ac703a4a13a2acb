"""A host on plain HTTP needs no certificates; one behind TLS must show a good one."""

import ssl

import pytest

from session_server.cli.http_client import Reach


@pytest.mark.parametrize(
    ("url", "mode"),
    [("http://127.0.0.1:9", ssl.CERT_NONE), ("https://ask.example", ssl.CERT_REQUIRED)],
)
def test_only_tls_is_held_to_its_certificates(url: str, mode: ssl.VerifyMode) -> None:
    with Reach(url, None, as_json=False).http() as http:
        context = http._transport._pool._ssl_context  # type: ignore[attr-defined]
        assert context.verify_mode == mode
        assert context.check_hostname is (mode is ssl.CERT_REQUIRED)
        assert not http.follow_redirects
