"""A turn through a client that openapi-python-client has made."""
import os

from made import AuthenticatedClient, Client
from made.api.session_service import session_service_create_session as create_session
from made.api.session_service import session_service_create_turn as create_turn
from made.api.session_service import session_service_get_turn as get_turn
from made.api.session_service import session_service_list_messages as list_messages
from made.api.session_service import session_service_run_turn as run_turn
from made.api.session_file_service import session_file_service_delete_session_file as delete_file
from made.api.session_file_service import session_file_service_write_session_file as write_file
from made.models import FairleadCommonV1Content, FairleadCommonV1Text, FairleadSessionV1Session
from made.models import SessionServiceCreateTurnBody, SessionServiceRunTurnBody
from made.types import File
from io import BytesIO

key = os.environ["GUARDED_KEY"]
client = AuthenticatedClient(base_url=os.environ["GUARDED"], token=key, raise_on_unexpected_status=True, timeout=60)

session = create_session.sync(client=client, body=FairleadSessionV1Session(agent="agents/helper"))
id = session.name.split("/")[1]
say = FairleadCommonV1Content(text=FairleadCommonV1Text(text="plain"))
turn = create_turn.sync(id, client=client, body=SessionServiceCreateTurnBody(content=[say]), idempotency_key="one")
again = create_turn.sync(id, client=client, body=SessionServiceCreateTurnBody(content=[say]), idempotency_key="one")
print("the same turn:", turn.name == again.name)
stream = run_turn.sync_detailed(id, client=client, body=SessionServiceRunTurnBody(text="again"))
print("the stream ends:", b"event: turn.finished" in stream.content)
done = get_turn.sync(id, turn.name.split("/")[3], client=client)
print("the turn:", done.state)
messages = list_messages.sync(id, client=client)
print("the message:", messages.messages[0].blocks[0].content.text.text)
write_file.sync(id, "a.txt", client=client, body=File(payload=BytesIO(b"x")))
deleted = delete_file.sync_detailed(id, "a.txt", client=client)
print("the file:", int(deleted.status_code))
refused = get_turn.sync_detailed(id, "none", client=Client(base_url=os.environ["GUARDED"]))
print("without the key:", int(refused.status_code), refused.parsed.message != "")
