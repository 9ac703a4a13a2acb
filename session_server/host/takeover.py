"""Resuming unfinished work: after a start, of a node that is gone, in a session loaded into memory.

What is unfinished is derived from the records alone. With several nodes, a turn or a call that was
sent is left to the node that runs it for as long as that node is alive.
"""

from session_server.host.effects import EffectRunner, SessionChannel
from session_server.host.host import Host
from session_server.reducers.effects import Effect, RecoverCall, RunTurn, effects_after_restart
from session_server.schemas.record import SessionRecord


class Takeover:
    def __init__(self, host: Host, effects: EffectRunner) -> None:
        self._host = host
        self._effects = effects
        host.loaded.on_loaded.append(lambda channel, _: self._resume(channel, is_start=False))

    def started(self) -> None:
        """Resumes what the process before this one left unfinished."""
        self._resume_all(is_start=True)
        if self._host.nodes is not None:
            self._host.nodes.on_lost.append(self._node_lost)

    def _node_lost(self) -> None:
        self._host.spawn(self._take_over())

    async def _take_over(self) -> None:
        """Resumes the work of a lost node, once all that it wrote has been read."""
        await self._host.caught_up()
        self._resume_all(is_start=False)

    def _resume_all(self, *, is_start: bool) -> None:
        for channel in tuple(self._host.sessions.values()):
            self._resume(channel, is_start=is_start)

    def _resume(self, channel: SessionChannel, *, is_start: bool) -> None:
        record = channel.committed
        for effect in effects_after_restart(record) if record is not None else ():
            if record is None or not self._is_free(record, effect):
                continue
            if isinstance(effect, RunTurn):
                owner = record.private.turn_owner
                was_begun = owner is not None and owner.turn_id == effect.turn_id
                self._effects.turns.run(channel, effect.turn_id, resumed=is_start or was_begun)
            else:
                self._effects.run(channel, effect)

    def _is_free(self, record: SessionRecord, effect: Effect) -> bool:
        """Whether no living node is running it; all other effects may run on several nodes."""
        nodes = self._host.nodes
        if nodes is None:
            return True
        if isinstance(effect, RecoverCall):
            return not nodes.is_alive(record.private.calls[effect.call_id].node)
        if isinstance(effect, RunTurn):
            owner = record.private.turn_owner
            if owner is None or owner.turn_id != effect.turn_id:
                return nodes.is_settled
            return not nodes.is_alive(owner.node)
        return True
