"""The examples run, and say what they promise."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_devices_finish_a_parked_call() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "two_devices.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"requestState": "v1.opaque-and-sealed"' in done.stdout
    assert '"region": "eu-north"' in done.stdout
    assert "Too late: Ana answered" in done.stdout


@pytest.mark.slow
def test_a_cluster_goes_on_without_one_of_its_nodes() -> None:
    """Three NATS servers, three nodes and the load balancer, as the example starts them."""
    pytest.importorskip("nats", reason="the extra session-server[nats] is missing")
    command = [sys.executable, EXAMPLES / "cluster" / "cluster.py", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cluster:
        try:
            check_cluster(cluster)
        finally:
            cluster.send_signal(signal.SIGINT)
            cluster.communicate(timeout=60)
    assert cluster.returncode == 0


def check_cluster(cluster: "subprocess.Popen[str]") -> None:
    assert cluster.stdout is not None
    said = ""
    for line in cluster.stdout:
        said += line
        if " nodes at http" in line:
            break
    url = re.findall(r" nodes at (http://\S+)", said)[0]
    made = httpx2.post(f"{url}v1/sessions", json={"resource": "ahp-session:/kept"}, timeout=60)
    assert made.status_code == 201, made.text
    os.kill(int(re.findall(r"node 0: process (\d+)", said)[0]), signal.SIGKILL)
    found = 0
    deadline = time.monotonic() + 60
    while found < 9 and time.monotonic() < deadline:
        try:  # each on a connection of its own, so that every node has its turn
            listed = httpx2.get(f"{url}v1/sessions", timeout=60)
        except httpx2.TransportError:
            continue  # the balancer has not noticed yet
        assert [item["resource"] for item in listed.json()["items"]] == ["ahp-session:/kept"]
        found += 1
    assert found == 9
