"""Slack's own client for Python against the stand-in: what it sends is taken, what it waits for comes."""

import json
import subprocess
import sys
from queue import Queue

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

PATIENCE = 60  # seconds; nothing that works takes this long
# Frames that come together are sometimes read one by one, as more arrive; so what acknowledges them may be late.
LATE = "a frame that acknowledges nothing, or too late"

stand_in = subprocess.Popen([sys.argv[1], LATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer():
    return json.loads(stand_in.stdout.readline())


def order(**what):
    stand_in.stdin.write(json.dumps(what) + "\n")
    stand_in.stdin.flush()
    return answer()


start = answer()
base_url = start["api_url"] + "/"


def refused(code, call):
    try:
        call()
    except SlackApiError as error:
        assert error.response["error"] == code, error
    else:
        raise AssertionError(f"{code} was expected")


# The Web API
web = WebClient(start["bot_token"], base_url=base_url)
me = web.auth_test()
channel = "C1"
blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*1 & 2*"}}]
metadata = {"event_type": "pmk", "event_payload": {"part": 1}}
question = web.chat_postMessage(channel=channel, text="1 & 2 = 3? 中文", blocks=blocks, metadata=metadata)
reply = web.chat_postMessage(channel=channel, text="…", thread_ts=question["ts"])
web.chat_update(channel=channel, ts=reply["ts"], text="in the thread")
history = web.conversations_history(channel=channel, limit=10, include_all_metadata=True)["messages"]
assert [(said["text"], said["metadata"]) for said in history] == [("1 & 2 = 3? 中文", metadata)], history
thread = web.conversations_replies(channel=channel, ts=question["ts"])["messages"]
assert [said["text"] for said in thread] == ["1 & 2 = 3? 中文", "in the thread"], thread
web.assistant_threads_setStatus(
    channel_id=channel, thread_ts=question["ts"], status="is working…", loading_messages=["Thinking…"]
)
stream = web.chat_startStream(
    channel=channel, thread_ts=question["ts"], recipient_user_id="U1", recipient_team_id=me["team_id"],
    markdown_text="**One**\n\n",
)
refused("streaming_state_conflict", lambda: web.chat_update(channel=channel, ts=stream["ts"], text="x"))
web.chat_appendStream(channel=channel, ts=stream["ts"], markdown_text="Two\n\n")
stopped = web.chat_stopStream(channel=channel, ts=stream["ts"], markdown_text="Three", metadata=metadata)
assert stopped["message"]["text"] == "**One**\n\nTwo\n\nThree", stopped
refused(
    "message_not_in_streaming_state",
    lambda: web.chat_appendStream(channel=channel, ts=stream["ts"], markdown_text="Four"),
)
web.chat_postEphemeral(channel=channel, user="U1", text="for one")
web.chat_postMessage(channel=channel, text="x", blocks=[{"type": "markdown", "text": "**x**"}])
web.files_upload_v2(channel=channel, thread_ts=question["ts"], filename="answer.md", content="# 整個回答")
web.chat_delete(channel=channel, ts=reply["ts"])
refused("msg_too_long", lambda: web.chat_update(channel=channel, ts=question["ts"], text="x" * 4001))
refused("invalid_auth", WebClient("xoxb-wrong", base_url=base_url).auth_test)
refused("not_allowed_token_type", WebClient(start["app_token"], base_url=base_url).auth_test)

# Socket Mode
arrived = Queue()


def listen(client, request):
    client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
    arrived.put(request.payload)


def event(what, wanted):
    while True:
        payload = arrived.get(timeout=PATIENCE)
        if wanted(payload.get("event", payload)):
            print(f"  {what}")
            return payload


def said(text):
    sent = order(do="dm", user="U1", text=text)
    payload = event(f'"{text}" arrives', lambda event: event["type"] == "message" and event["ts"] == sent["ts"])
    assert payload["event_id"] == sent["event_id"]


# It looks for a broken connection as often as it pings.
socket = SocketModeClient(app_token=start["app_token"], web_client=WebClient(base_url=base_url), ping_interval=1)
socket.socket_mode_request_listeners.append(listen)
socket.connect()
said("hello")
mention = order(do="mention", channel=channel, user="U1", text="are you there?")
event("a mention arrives", lambda event: event["type"] == "app_mention" and event["ts"] == mention["ts"])
own = web.chat_postMessage(channel="D1", text="mine")
echo = event("the bot's own post arrives", lambda event: event["type"] == "message" and event["ts"] == own["ts"])
assert (echo["event"]["user"], echo["event"]["bot_id"]) == (me["user_id"], me["bot_id"]), echo
web.chat_update(channel="D1", ts=own["ts"], text="mine, edited")
event(
    "its edit arrives",
    lambda event: event.get("subtype") == "message_changed" and event["message"]["ts"] == own["ts"],
)

# What people do about messages, and the buttons under them
written = order(do="dm", user="U1", text="when is the lunch?")
place = {"channel": written["channel"], "ts": written["ts"]}
order(do="edit", text="when is the launch?", **place)
edited = event(
    "an edit arrives",
    lambda event: event.get("subtype") == "message_changed" and event["message"]["ts"] == written["ts"],
)["event"]
assert (edited["message"]["text"], edited["previous_message"]["text"], edited["message"]["edited"]["user"]) == (
    "when is the launch?", "when is the lunch?", "U1",
), edited
order(do="react", user="U1", reaction="repeat", **place)
reacted = event(
    "a reaction arrives", lambda event: event["type"] == "reaction_added" and event["item"]["ts"] == written["ts"]
)["event"]
assert (reacted["reaction"], reacted["user"], reacted["item"]["channel"]) == ("repeat", "U1", "D1"), reacted
order(do="delete", **place)
gone = event("a deletion arrives", lambda event: event.get("deleted_ts") == written["ts"])["event"]
assert (gone["subtype"], gone["previous_message"]["text"]) == ("message_deleted", "when is the launch?"), gone
button = {"type": "button", "action_id": "pmk_word_yes", "text": {"type": "plain_text", "text": "Yes"}, "value": "yes"}
asking = web.chat_postMessage(
    channel="D1", text="may I?", blocks=[{"type": "actions", "block_id": "pmk_word", "elements": [button]}]
)
click = order(do="click", user="U1", channel="D1", ts=asking["ts"], action="pmk_word_yes", value="yes")
pressed = event(
    "a click arrives", lambda event: event["type"] == "block_actions" and event["message"]["ts"] == asking["ts"]
)
action = pressed["actions"][0]
assert (action["action_id"], action["value"], pressed["user"]["id"]) == ("pmk_word_yes", "yes", "U1"), pressed
after_ms = order(do="acked", id=click)["after_ms"]
assert after_ms < 3_000, f"a click was acknowledged after {after_ms} ms"
prompts = [{"title": "On call", "message": "Who is on call tonight?"}]
web.api_call("assistant.threads.setSuggestedPrompts", json={"channel_id": "D1", "prompts": prompts})
assert order(do="suggested", user="U1") == prompts

for fault in [{"do": "disconnect", "reason": "warning"}, {"do": "drop"}]:
    order(**fault)
    said(f"after {fault['do']}")
socket.close()

stand_in.stdin.close()
verdict = answer()
assert (verdict["violations"], verdict["given_up"]) == ([], []), verdict
assert stand_in.wait(PATIENCE) == 0
