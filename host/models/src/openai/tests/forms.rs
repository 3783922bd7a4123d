//! Servers that want their requests in another form.

use super::*;

/// Azure, and proxies of a company in front of OpenAI's newer models: every call was refused.
#[tokio::test]
async fn a_server_that_asks_for_the_newer_name_of_the_room_gets_it_from_then_on() {
    let server = stand_in::OpenAi::start();
    let message =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let error = json!({"message": message, "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"});
    server.push(Reply::Error(400, json!({"error": error})));
    let client = client(&server, Some(KEY));
    for _ in 0..2 {
        client.ask(&request(vec![Message::user("hello")]), &Meter::default()).await.expect("an answer");
    }
    let rooms = |body: &serde_json::Value| ["max_tokens", "max_completion_tokens"].map(|name| body.get(name).is_some());
    let rooms: Vec<_> = server.requests().iter().map(rooms).collect();
    assert_eq!(rooms, [[true, false], [false, true], [false, true]]);
    // What is merely too large is not asked for under another name.
    let server = stand_in::OpenAi::start();
    let message = "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is \
                   8192 tokens and your request has 200 input tokens";
    server.push(Reply::Error(400, json!({"error": {"message": message, "type": "BadRequestError", "code": 400}})));
    self::client(&server, Some(KEY))
        .ask(&request(vec![Message::user("hello")]), &Meter::default())
        .await
        .expect_err("a refusal");
    assert_eq!(server.requests().len(), 1);
}

/// Databricks, xAI and Mistral: every call was refused.
#[tokio::test]
async fn a_server_that_counts_nothing_in_a_stream_could_not_be_used() {
    let detail = json!([{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted", "input": {"include_usage": true}}]);
    for (status, body) in [
        (400, json!({"error_code": "BAD_REQUEST", "message": "Error: json: unknown field \"stream_options\""})),
        (
            400,
            json!({"code": "Client specified an invalid argument", "error": "Argument not supported: stream_options"}),
        ),
        (422, json!({"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"})),
    ] {
        let server = stand_in::OpenAi::start();
        server.refuse_when(|body| body.get("stream_options").is_some(), status, body.clone());
        let client = client(&server, Some(KEY));
        for _ in 0..2 {
            client.ask(&request(vec![Message::user("hello")]), &Meter::default()).await.expect("an answer");
        }
        let asked: Vec<_> = server.requests().iter().map(|body| body.get("stream_options").is_some()).collect();
        assert_eq!(asked, [true, false, false], "{body}");
    }
    // What is refused without it as well was about something else.
    let server = stand_in::OpenAi::start();
    let quoted = json!({"error": {"message": "no wombats in {\"stream_options\":{\"include_usage\":true}}"}});
    server.refuse_when(|body| body["messages"].to_string().contains("wombat"), 400, quoted);
    let client = client(&server, Some(KEY));
    client.ask(&request(vec![Message::user("a wombat")]), &Meter::default()).await.expect_err("a refusal");
    client.ask(&request(vec![Message::user("hello")]), &Meter::default()).await.expect("an answer");
    assert!(server.requests().pop().expect("requests").get("stream_options").is_some());
}

/// As OpenAI refuses the ids of another server, and as proxies pass that on.
#[tokio::test]
async fn every_question_was_refused_after_a_switch_from_a_server_with_long_ids() {
    let server = stand_in::OpenAi::start();
    server.expect_refusals("string too long");
    let call = Block::ToolUse { id: "x".repeat(43), name: "mra_ask".into(), input: json!({"repo": "erp"}) };
    let result = Block::ToolResult { tool_use_id: "x".repeat(43), content: "found".into(), is_error: false };
    let history = request(vec![
        Message::user("look"),
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] },
        Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
    ]);
    let client = client(&server, Some(KEY));
    for _ in 0..2 {
        client.ask(&history, &Meter::default()).await.expect("an answer");
    }
    let sent: Vec<_> = server
        .requests()
        .iter()
        .map(|body| body["messages"][2]["tool_calls"][0]["id"].as_str().unwrap_or_default().len())
        .collect();
    assert_eq!(sent, [43, 9, 9]);
}

/// As OpenAI, Anthropic, Bedrock and Mistral refuse ids, directly and behind proxies, and as no known server does.
#[tokio::test]
async fn refusals_of_ids_in_other_words_were_final() {
    let id = "functions.mra_ask:0";
    let block = Block::ToolUse { id: id.into(), name: "mra_ask".into(), input: json!({"repo": "erp"}) };
    let result = Block::ToolResult { tool_use_id: id.into(), content: "found".into(), is_error: false };
    let called = request(vec![
        Message::user("look"),
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![block] },
        Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
    ]);
    let asked = async |request: &Request, status: u16, body: serde_json::Value| {
        let server = stand_in::OpenAi::start();
        let is_odd =
            |body: &serde_json::Value| !body["messages"][2]["tool_calls"][0]["id"].to_string().contains("call0");
        server.refuse_when(is_odd, status, body);
        let client = client(&server, Some(KEY));
        let answered = client.ask(request, &Meter::default()).await.is_ok();
        let requests = server.requests();
        let mut ids: Vec<_> = requests.iter().map(|body| body["messages"][2]["tool_calls"][0]["id"].clone()).collect();
        // A failure of a proxy's own is waited out first.
        ids.dedup();
        (answered, ids)
    };
    let said = |message: &str| json!({"error": {"message": message}});
    for (status, body) in [
        (400, said("Invalid 'messages[3].tool_calls[0].id': string too long.")),
        (400, said("litellm.ContextWindowExceededError: Invalid 'messages[3].tool_calls[0].id': string too long.")),
        (400, said("Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64")),
        (400, said("Invalid 'messages[2].tool_call_id': string too long.")),
        (400, said("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")),
        (
            400,
            said(
                "1 validation error detected: Value 'a:0' at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
            ),
        ),
        (
            400,
            said(
                "1 validation error detected: Value 'a:0' at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must have length less than or equal to 64",
            ),
        ),
        (
            422,
            json!({"detail": [{"loc": ["body", "messages", 2, "tool_calls", 0, "id"], "msg": "String should have at most 40 characters"}]}),
        ),
        (
            400,
            json!({"object": "error", "message": "Tool call id was functions.a:0 but must be a-z, A-Z, 0-9, with a length of 9.", "type": "invalid_function_call", "code": "3280"}),
        ),
        (400, said("the wombat does not like functions.mra_ask:0")),
        (500, said("APIConnectionError: messages.1.content.0.tool_use.id: String should match pattern '^[a-z]+$'")),
    ] {
        let (answered, ids) = asked(&called, status, body.clone()).await;
        assert_eq!((answered, ids.as_slice()), (true, [json!(id), json!("call00001")].as_slice()), "{body}");
    }
    // What says nothing of ids, or is refused for another reason, is not asked again; nor is what has no calls.
    let named = || said("Invalid 'messages[3].tool_calls[0].id': string too long.");
    for (request, status, body) in [
        (&called, 400, said("Invalid 'tools[0].function.name': string too long; the tool call is invalid.")),
        (&called, 401, named()),
        (&request(vec![Message::user("look")]), 400, named()),
    ] {
        let (answered, ids) = asked(request, status, body.clone()).await;
        assert_eq!((answered, ids.len()), (false, 1), "{body}");
    }
}
