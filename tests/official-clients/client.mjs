// Slack's own clients for Node.js against the stand-in: what they send is taken, what they wait for comes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { SocketModeClient } from "@slack/socket-mode";
import { WebClient } from "@slack/web-api";

const stranded = setTimeout(() => {
  console.error("error: the clients are still waiting after 60 s");
  process.exit(1);
}, 60_000);

const standIn = spawn(process.argv[2], { stdio: ["pipe", "pipe", "inherit"] });
const answers = createInterface({ input: standIn.stdout })[Symbol.asyncIterator]();
const answer = async () => JSON.parse((await answers.next()).value);
const order = (what) => {
  standIn.stdin.write(`${JSON.stringify(what)}\n`);
  return answer();
};
const { api_url, app_token, bot_token } = await answer();
const options = { slackApiUrl: `${api_url}/`, retryConfig: { retries: 0 } };

// The Web API
const web = new WebClient(bot_token, options);
const { user_id, bot_id, team_id } = await web.auth.test();
const channel = "C1";
const blocks = [{ type: "section", text: { type: "mrkdwn", text: "*1 & 2*" } }];
const metadata = { event_type: "pmk", event_payload: { part: 1 } };
const question = await web.chat.postMessage({ channel, text: "1 & 2 = 3? 中文", blocks, metadata, link_names: false });
const reply = await web.chat.postMessage({ channel, text: "…", thread_ts: question.ts });
await web.chat.update({ channel, ts: reply.ts, text: "in the thread" });
const history = await web.conversations.history({ channel, limit: 10, include_all_metadata: true });
assert.deepEqual(history.messages.map(({ text }) => text), ["1 & 2 = 3? 中文"]);
assert.deepEqual(history.messages[0].metadata, metadata);
const thread = await web.conversations.replies({ channel, ts: question.ts });
assert.deepEqual(thread.messages.map(({ text }) => text), ["1 & 2 = 3? 中文", "in the thread"]);
await web.assistant.threads.setStatus({
  channel_id: channel, thread_ts: question.ts, status: "is working…", loading_messages: ["Thinking…"],
});
const { ts } = await web.chat.startStream({
  channel, thread_ts: question.ts, recipient_user_id: "U1", recipient_team_id: team_id, markdown_text: "**One**\n\n",
});
await web.chat.appendStream({ channel, ts, markdown_text: "Two\n\n" });
const stopped = await web.chat.stopStream({ channel, ts, markdown_text: "Three", metadata });
assert.equal(stopped.message.text, "**One**\n\nTwo\n\nThree");
await assert.rejects(
  () => web.chat.appendStream({ channel, ts, markdown_text: "Four" }),
  ({ data }) => data?.error === "message_not_in_streaming_state",
);
await web.chat.postEphemeral({ channel, user: "U1", text: "for one" });
await web.chat.postMessage({ channel, text: "x", blocks: [{ type: "markdown", text: "**x**" }] });
await web.filesUploadV2({ channel_id: channel, thread_ts: question.ts, filename: "answer.md", file: Buffer.from("# 整個回答") });
await web.chat.delete({ channel, ts: reply.ts });
const refusals = [
  ["msg_too_long", () => web.chat.update({ channel, ts: question.ts, text: "x".repeat(4001) })],
  ["invalid_auth", () => new WebClient("xoxb-wrong", options).auth.test()],
  ["not_allowed_token_type", () => new WebClient(app_token, options).auth.test()],
];
for (const [code, call] of refusals) {
  await assert.rejects(call, ({ data }) => data?.error === code, code);
}

// Socket Mode
const socket = new SocketModeClient({ appToken: app_token, clientOptions: options });
const seen = [];
const waiting = [];
socket.on("slack_event", async ({ ack, body }) => {
  await ack();
  seen.push(body);
  waiting.splice(0).forEach((look) => look());
});
const event = async (what, wanted) => {
  let found;
  while (!(found = seen.find((body) => wanted(body.event ?? body)))) {
    await new Promise((look) => waiting.push(look));
  }
  console.log(`  ${what}`);
  return found;
};
const said = async (text) => {
  const sent = await order({ do: "dm", user: "U1", text });
  const { event_id } = await event(`"${text}" arrives`, ({ type, ts }) => type === "message" && ts === sent.ts);
  assert.equal(event_id, sent.event_id);
};

await socket.start();
await said("hello");
const mention = await order({ do: "mention", channel, user: "U1", text: "are you there?" });
await event("a mention arrives", ({ type, ts }) => type === "app_mention" && ts === mention.ts);
const own = await web.chat.postMessage({ channel: "D1", text: "mine" });
const echo = await event("the bot's own post arrives", ({ type, ts }) => type === "message" && ts === own.ts);
assert.deepEqual([echo.event.user, echo.event.bot_id], [user_id, bot_id]);
await web.chat.update({ channel: "D1", ts: own.ts, text: "mine, edited" });
await event("its edit arrives", ({ subtype, message }) => subtype === "message_changed" && message.ts === own.ts);

// What people do about messages, and the buttons under them
const written = await order({ do: "dm", user: "U1", text: "when is the lunch?" });
const place = { channel: written.channel, ts: written.ts };
await order({ do: "edit", ...place, text: "when is the launch?" });
const edited = await event("an edit arrives", ({ subtype, message }) => subtype === "message_changed" && message.ts === written.ts);
assert.deepEqual(
  [edited.event.message.text, edited.event.previous_message.text, edited.event.message.edited.user],
  ["when is the launch?", "when is the lunch?", "U1"],
);
await order({ do: "react", user: "U1", ...place, reaction: "repeat" });
const reacted = await event("a reaction arrives", ({ type, item }) => type === "reaction_added" && item.ts === written.ts);
assert.deepEqual([reacted.event.reaction, reacted.event.user, reacted.event.item.channel], ["repeat", "U1", "D1"]);
await order({ do: "delete", ...place });
const gone = await event("a deletion arrives", ({ subtype, deleted_ts }) => subtype === "message_deleted" && deleted_ts === written.ts);
assert.equal(gone.event.previous_message.text, "when is the launch?");
const button = { type: "button", action_id: "pmk_word_yes", text: { type: "plain_text", text: "Yes" }, value: "yes" };
const asking = await web.chat.postMessage({
  channel: "D1", text: "may I?", blocks: [{ type: "actions", block_id: "pmk_word", elements: [button] }],
});
const click = await order({ do: "click", user: "U1", channel: "D1", ts: asking.ts, action: "pmk_word_yes", value: "yes" });
const pressed = await event("a click arrives", ({ type, message }) => type === "block_actions" && message.ts === asking.ts);
assert.deepEqual([pressed.actions[0].action_id, pressed.actions[0].value, pressed.user.id], ["pmk_word_yes", "yes", "U1"]);
const { after_ms } = await order({ do: "acked", id: click });
assert.ok(after_ms < 3_000, `a click was acknowledged after ${after_ms} ms`);
const prompts = [{ title: "On call", message: "Who is on call tonight?" }];
await web.assistant.threads.setSuggestedPrompts({ channel_id: "D1", prompts });
assert.deepEqual(await order({ do: "suggested", user: "U1" }), prompts);

for (const fault of [{ do: "disconnect", reason: "warning" }, { do: "drop" }]) {
  // Not `once` of node:events: that fails with the first error, and a broken connection is one.
  const again = new Promise((connected) => socket.once("connected", connected));
  await order(fault);
  await again;
  await said(`after ${fault.do}`);
}
// One whose acknowledgement broke with its connection comes again, and is acknowledged then.
await order({ do: "acks", least: new Set(seen.map(({ event_id, trigger_id }) => event_id ?? trigger_id)).size });
await socket.disconnect();

standIn.stdin.end();
const { violations, given_up } = await answer();
assert.deepEqual({ violations, given_up }, { violations: [], given_up: [] });
const [code] = await once(standIn, "exit");
assert.equal(code, 0);
clearTimeout(stranded);
