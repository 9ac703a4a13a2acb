"""The whole server on PostgreSQL: it is killed, and the database under it is."""

from pathlib import Path
from typing import Any

import pytest

from session_server.cli.failures import ExitCode
from tests.cli.shells import Shell
from tests.effort import tries
from tests.end_to_end.test_crash import check_kills
from tests.postgres import own_cluster, shared_cluster
from tests.servers import serving

KILLS = tries(in_ci=5, at_hand=2)


@pytest.mark.proves("design.log.postgres-serve", "design.log.kill")
async def test_what_anybody_has_seen_survives_every_kill_of_the_host(record_property: Any) -> None:
    await check_kills(shared_cluster().url("kills"), KILLS, record_property)


@pytest.mark.proves("design.log.backup")
def test_doctor_and_backup_know_the_database(tmp_path: Path) -> None:
    with own_cluster(fsync="off") as cluster:
        store = cluster.url().replace("postgres@", "postgres:s3cret@")
        with serving(store, "--data-dir", str(tmp_path)) as server:
            shell = Shell(server.url)
            checked = shell("doctor", "--json", "--store", store)
            found = {check["message"]: check for check in checked.json}
            assert found["fsync is off."]["finding"] == "problem"
            opened = [reason for reason in found if reason.endswith("can be opened.")]
            assert opened == [f"{cluster.url()} can be opened."]
            copied = shell("backup", "copy.db", "--store", store)
            assert copied.code == ExitCode.FAILED
            assert "pg_dump --schema=session_server" in copied.err
            shown = "".join([checked.out, checked.err, copied.out, copied.err, *server.output])
            assert "s3cret" not in shown
            second = shell("serve", "--port", "0", "--store", store)
            assert second.code == ExitCode.FAILED
            assert "is in use by session-server" in second.err
            server.stop()
