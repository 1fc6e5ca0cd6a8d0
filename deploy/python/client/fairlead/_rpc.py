"""RPCs and events over gRPC."""

from __future__ import annotations

from typing import Any, AsyncGenerator, Generator

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from fairlead.session.v1 import event_pb2, session_service_pb2 as api

from . import errors

_OPTIONS = [("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 16 << 20),
            ("grpc.keepalive_time_ms", 30000), ("grpc.max_reconnect_backoff_ms", 2000), ("grpc.min_reconnect_backoff_ms", 500)]
_EVENTS = "/fairlead.session.v1.SessionService/StreamEvents"


def _how(method: MethodDescriptor, answer: Message) -> dict[str, Any]:
    return {"method": f"/{method.containing_service.full_name}/{method.name}", "request_serializer": lambda m: m.SerializeToString(),
            "response_deserializer": type(answer).FromString}


class Rpc:
    def __init__(self, target: str, metadata: list[tuple[str, str]], credentials: grpc.ChannelCredentials | None) -> None:
        self._channel = grpc.secure_channel(target, credentials, _OPTIONS) if credentials else grpc.insecure_channel(target, _OPTIONS)
        self._metadata = metadata

    def call(self, method: MethodDescriptor, request: Message, answer: Message) -> Message:
        try:
            return self._channel.unary_unary(**_how(method, answer))(request, metadata=self._metadata, timeout=60)
        except grpc.RpcError as e:
            raise errors.of_rpc(e) from e

    def events(self, session: str, after: int) -> Generator[event_pb2.Event, None, None]:
        stream = self._channel.unary_stream(_EVENTS, api.StreamEventsRequest.SerializeToString, api.StreamEventsResponse.FromString)
        call = stream(api.StreamEventsRequest(parent=session, after_seq=after), metadata=self._metadata)
        try:
            for piece in call:
                if piece.HasField("event"):
                    yield piece.event
        except grpc.RpcError as e:
            raise errors.of_rpc(e) from e
        finally:
            call.cancel()

    def close(self) -> None:
        self._channel.close()


class AsyncRpc:
    def __init__(self, target: str, metadata: list[tuple[str, str]], credentials: grpc.ChannelCredentials | None) -> None:
        self._channel = grpc.aio.secure_channel(target, credentials, _OPTIONS) if credentials else grpc.aio.insecure_channel(target, _OPTIONS)
        self._metadata = metadata

    async def call(self, method: MethodDescriptor, request: Message, answer: Message) -> Message:
        try:
            return await self._channel.unary_unary(**_how(method, answer))(request, metadata=self._metadata, timeout=60)
        except grpc.RpcError as e:
            raise errors.of_rpc(e) from e

    async def events(self, session: str, after: int) -> AsyncGenerator[event_pb2.Event, None]:
        stream = self._channel.unary_stream(_EVENTS, api.StreamEventsRequest.SerializeToString, api.StreamEventsResponse.FromString)
        call = stream(api.StreamEventsRequest(parent=session, after_seq=after), metadata=self._metadata)
        try:
            async for piece in call:
                if piece.HasField("event"):
                    yield piece.event
        except grpc.RpcError as e:
            raise errors.of_rpc(e) from e
        finally:
            call.cancel()

    async def close(self) -> None:
        await self._channel.close()
