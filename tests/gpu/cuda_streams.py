"""The fake driver's functions on streams, events and captures."""

from __future__ import annotations

from ctypes import c_float, c_int, c_void_p

from gpu.cuda_memory import Transfers
from gpu.cuda_names import CudaError, HostFunction, put
from gpu.cuda_work import Capture, Event, Graph, Stream

__all__ = ["Streams"]


class Streams(Transfers):
    """Queues of work, and moments in them."""

    def cuStreamCreate(self, out: int, flags: int) -> None:
        context = self.context()
        if flags not in (0, 1):
            raise CudaError(1)
        stream = Stream(context.device, blocking=not flags)
        self.streams.append(stream)
        put(out, c_void_p, self.new(stream))

    def cuStreamDestroy_v2(self, handle: int) -> None:
        self.context()
        self.drop(handle, Stream).alive = False  # what it was given is still done

    def _not_captured(self, stream: Stream, what: str) -> None:
        if stream.capture is not None:
            stream.capture.valid = False
            raise self.refuse(900, f"{what} of a stream that is captured")

    def cuStreamSynchronize(self, handle: int | None) -> None:
        stream = self.stream(handle)
        self._not_captured(stream, "cuStreamSynchronize")
        self.wait(stream.device, self._all_before(stream))

    def _all_before(self, stream: Stream) -> list:
        """What a stream waits for: the legacy one also for those that are blocking."""
        return [s.last for s in self.streams if s is stream or (stream.legacy and s.blocking
                                                                and s.device == stream.device)]

    def cuStreamQuery(self, handle: int | None) -> None:
        stream = self.stream(handle)
        self._not_captured(stream, "cuStreamQuery")
        self.schedule.some()
        if self.contexts[stream.device].error:
            raise CudaError(self.contexts[stream.device].error)
        if any(w is not None and not w.done for w in self._all_before(stream)):
            raise CudaError(600)

    def cuStreamWaitEvent(self, handle: int | None, event_handle: int, flags: int) -> None:
        stream, event = self.stream(handle), self.get(event_handle, Event)
        if flags not in (0, 1):
            raise CudaError(1)
        if event.captured is None:
            if stream.capture is not None:
                stream.capture.valid = False
                raise self.refuse(905, "a captured stream waits for an event from outside")
            self.give(stream, None, [event.work])
            return
        capture, nodes = event.captured
        if stream.capture is not None and stream.capture is not capture:
            capture.valid = stream.capture.valid = False
            raise self.refuse(902, "two captures would become one")
        if stream.capture is None:
            stream.capture = capture
            capture.ends[stream] = []
        capture.ends[stream] = [*capture.ends[stream], *[n for n in nodes if n not in capture.ends[stream]]]

    def cuLaunchHostFunc(self, handle: int | None, function: int, data: int | None) -> None:
        stream = self.stream(handle)
        if not function:
            raise CudaError(1)
        call = HostFunction(function)

        def run() -> None:
            self.local.calling = True
            try:
                call(data)
            finally:
                self.local.calling = False
        self.give(stream, run)

    # -- events -----------------------------------------------------------------------------------
    def cuEventCreate(self, out: int, flags: int) -> None:
        self.context()
        if flags & ~7:
            raise CudaError(1)
        put(out, c_void_p, self.new(Event(timing=not flags & 2)))

    def cuEventDestroy_v2(self, handle: int) -> None:
        self.context()
        self.drop(handle, Event)

    def cuEventRecord(self, handle: int, stream_handle: int | None) -> None:
        stream, event = self.stream(stream_handle), self.get(handle, Event)
        if stream.capture is not None:
            event.captured = (stream.capture, list(stream.capture.ends[stream]))
        else:
            event.captured, event.work = None, self.give(stream, None)

    def cuEventSynchronize(self, handle: int) -> None:
        context, event = self.context(), self.get(handle, Event)
        self._not_in_capture(event)
        self.wait(context.device, [event.work])

    def cuEventQuery(self, handle: int) -> None:
        context, event = self.context(), self.get(handle, Event)
        self._not_in_capture(event)
        self.schedule.some()
        if context.error:
            raise CudaError(context.error)
        if event.work is not None and not event.work.done:
            raise CudaError(600)

    def _not_in_capture(self, event: Event) -> None:
        if event.captured is not None:
            event.captured[0].valid = False
            raise self.refuse(907, "an event of a capture is asked or waited for")

    def cuEventElapsedTime(self, out: int, start: int, end: int) -> None:
        self.context()
        events = [self.get(h, Event) for h in (start, end)]
        if any(not e.timing or e.work is None for e in events):
            raise self.refuse(400, "an event has no time, or was not recorded")
        first, last = (e.work for e in events)
        assert first is not None and last is not None
        if not (first.done and last.done):
            raise CudaError(600)
        put(out, c_float, (last.time - first.time) / 1000)

    # -- captures ---------------------------------------------------------------------------------
    def cuStreamBeginCapture_v2(self, handle: int | None, mode: int) -> None:
        stream = self.stream(handle)
        if stream.legacy:
            raise self.refuse(900, "the legacy stream cannot be captured")
        if stream.capture is not None:
            raise self.refuse(401, "the stream is captured already")
        if mode not in (0, 1, 2):
            raise CudaError(1)
        stream.capture = Capture(stream, mode)

    def cuStreamEndCapture(self, handle: int | None, out: int) -> None:
        stream = self.stream(handle)
        capture = stream.capture
        if capture is None:
            raise self.refuse(401, "the stream is not captured")
        if capture.origin is not stream:
            capture.valid = False
            raise self.refuse(903, "the capture began in another stream")
        for other in capture.ends:
            other.capture = None
        put(out, c_void_p, 0)
        if not capture.valid:
            raise CudaError(901)
        reached, left = set(capture.ends[stream]), list(capture.ends[stream])
        while left:
            for node in left.pop().needs:
                if node not in reached:
                    reached.add(node)
                    left.append(node)
        if any(node not in reached for node in capture.nodes):
            raise self.refuse(904, "work of another stream was captured that the first does not wait for")
        for node in capture.nodes:
            node.handle = self.new(node)
        put(out, c_void_p, self.new(Graph(capture.nodes)))

    def cuStreamIsCapturing(self, handle: int | None, out: int) -> None:
        context = self.context()
        stream = context.legacy if handle in (None, 0, 1) else self.get(handle, Stream)
        status = 0 if stream.capture is None else 1 if stream.capture.valid else 2
        put(out, c_int, status)
