//! Images that people attach. What counts is what the model was sent, and what is kept.

use std::os::unix::fs::PermissionsExt;

use base64::{Engine, prelude::BASE64_STANDARD};
use pmk_stand_ins::{
    anthropic::{Behaviour, Recorded},
    images::png,
    openai::{self, OpenAi, Reply},
    slack::{Fault, Upload, dm_channel},
};
use serde_json::{Value, json};

use crate::{
    support::{PATIENCE, stand_in, until_async},
    workspace::{Gateway, Scene, command, rules, rules_for_kills},
};

async fn scene(slack: Value) -> Scene {
    let config = json!({"version": 1, "language": "en", "presence": {"broadcast": false}, "slack": slack});
    Scene::new(rules(), &config).await
}

fn shot(width: u32, height: u32) -> Upload {
    Upload::new("shot.png", "image/png", png(width, height))
}

fn blocks(request: &Recorded) -> Vec<Value> {
    let messages = request.body["messages"].as_array().expect("messages").iter();
    messages.flat_map(|message| message["content"].as_array().cloned().unwrap_or_default()).collect()
}

/// The images of a request, as bytes.
fn images(request: &Recorded) -> Vec<Vec<u8>> {
    let data = blocks(request).into_iter().filter_map(|block| block["source"]["data"].as_str().map(str::to_owned));
    data.map(|data| BASE64_STANDARD.decode(data).expect("base64")).collect()
}

impl Scene {
    async fn answer(&self, text: &str, files: Vec<Upload>) -> String {
        let sent = self.slack.dm_with_files("U1", text, files);
        self.slack.await_reply(&sent, PATIENCE).await.expect("an answer").text
    }

    fn last(&self) -> Recorded {
        self.anthropic.requests().pop().expect("a request")
    }

    fn fetched(&self) -> Vec<String> {
        self.slack.fetches().into_iter().map(|fetch| fetch.name).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_shown_under_its_name_counted_and_remembered() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    let told = scene.answer("what is wrong there?", vec![shot(640, 480)]).await;
    assert!(!told.contains("Not read"), "{told}");
    let shown = blocks(&scene.last());
    let [name, image, question] = &shown[..] else { panic!("{shown:#?}") };
    let name = name["text"].as_str().expect("a text");
    assert!(name.starts_with("An image that is attached") && name.ends_with("\n> image: shot.png (640×480)"), "{name}");
    assert_eq!((&image["type"], &image["source"]["media_type"]), (&json!("image"), &json!("image/png")));
    assert_eq!(question["text"], "what is wrong there?");
    assert_eq!(images(&scene.last()), [png(640, 480)]);
    assert_eq!(scene.slack.fetches()[0].token.as_deref(), Some(scene.slack.rules().bot_token.as_str()));
    // 23 by 18 patches of 28 pixels.
    let sent = scene.home.await_events("turn.processed", 1)[0]["tokensSent"].as_u64().expect("a count");
    assert!((414..600).contains(&sent), "{sent}");
    scene.answer("and what else?", vec![]).await;
    assert_eq!((images(&scene.last()), scene.fetched().len()), (vec![png(640, 480)], 1));
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_is_too_large_slacks_smaller_picture_is_shown() {
    let scene = scene(json!({"maxImageKiB": 1})).await;
    let _gateway = scene.start().await;
    let preview = Some(png(1_024, 768));
    scene.answer("bytes", vec![Upload { size: 9_999, preview: preview.clone(), ..shot(1_500, 900) }]).await;
    assert_eq!(
        (images(&scene.last()), scene.fetched()),
        (vec![png(1_024, 768)], vec!["shot.png (preview)".to_owned()])
    );
    scene.answer("pixels", vec![Upload { preview, ..shot(4_000, 3_000) }]).await;
    assert_eq!(images(&scene.last()).pop(), Some(png(1_024, 768)));
    // Where there is none, it is shown as it is, as far as any model takes it.
    scene.answer("wide", vec![shot(4_000, 30)]).await;
    assert_eq!(images(&scene.last()).pop(), Some(png(4_000, 30)));
    // Nor where the smaller one is of no use, as it may be right after the upload.
    let broken = Some(b"not there yet".to_vec());
    scene.answer("broad", vec![Upload { preview: broken, ..shot(3_900, 30) }]).await;
    assert_eq!(images(&scene.last()).pop(), Some(png(3_900, 30)));
    let told = scene.answer("wider", vec![shot(9_000, 30), Upload { size: 9_999, ..shot(10, 10) }]).await;
    let why = "`shot.png` (an image larger than 1 KiB or 8,000 pixels)";
    assert!(told.starts_with(&format!(":paperclip: Not read: {why}, {why}\n")), "{told}");
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_image_whatever_it_is_called_is_not_sent_as_one() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    let page = Upload::new("page.png", "image/png", "<html>not an image</html>");
    let told = scene.answer("look", vec![page, Upload::new("a.jpg", "image/jpeg", png(3, 3))]).await;
    assert!(told.starts_with(":paperclip: Not read: `page.png` (an image format that models cannot read)\n"), "{told}");
    // It is what its bytes say.
    let image = blocks(&scene.last()).into_iter().find(|block| block["type"] == "image").expect("an image");
    assert_eq!(image["source"]["media_type"], "image/png");
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_have_none_sent_and_a_model_may_look_at_none() {
    let none = scene(json!({"maxImageKiB": 0})).await;
    let _gateway = none.start().await;
    let told = none.answer("look", vec![shot(3, 3)]).await;
    assert!(told.contains("`shot.png` (files are not read here)") && none.fetched().is_empty(), "{told}");
    let blind = scene(json!({})).await;
    let _gateway = Gateway::start(&blind.home, &blind.slack, &[]);
    assert!(blind.slack.await_connected(PATIENCE).await);
    let told = blind.answer("look", vec![shot(3, 3)]).await;
    assert!(
        told.contains("`shot.png` (an image, and this model cannot read images)") && blind.fetched().is_empty(),
        "{told}"
    );
}

/// Servers say that they take no images in words that nobody has listed.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_server_refuses_images_the_question_is_answered_without_and_they_stay_away() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    scene.anthropic.refuse_images(400, "invalid_request_error", "the wombat has no eyes");
    scene.anthropic.push(Behaviour::answer("I cannot see it."));
    let told = scene.answer("what is it?", vec![shot(640, 480)]).await;
    assert!(told.contains("The model's server refused the images") && told.contains("I cannot see it."), "{told}");
    let refused = || scene.anthropic.requests().iter().filter(|asked| asked.refused.is_some()).count();
    // With the image, without it, and with nothing else.
    let [_, without, alone] = &scene.anthropic.requests()[..] else { panic!("{:#?}", scene.anthropic.requests()) };
    assert_eq!((refused(), images(without), images(alone)), (2, vec![], vec![png(640, 480)]));
    let words = blocks(without)[1]["text"].as_str().expect("words").to_owned();
    assert!(words.starts_with("…(an image that the model's server refused, 640×480; the host has it, id m"), "{words}");
    let told = scene.answer("and now?", vec![]).await;
    assert!(refused() == 2 && !told.contains("refused"), "{told}");
}

/// Whether a request to a server that speaks chat completions has an image.
fn shows_an_image(body: &Value) -> bool {
    body.to_string().contains("\"image_url\":{")
}

/// OpenRouter and llama.cpp say it with a status of something else: people read that the server does not know the model, or
/// is too busy, and the admins were alarmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_eyes_was_taken_for_one_that_is_busy_or_does_not_know_the_model() {
    for (status, message) in [
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        // In words that nobody has listed.
        (404, "no upstream with vision"),
    ] {
        let config = json!({"version": 1, "language": "en", "presence": {"broadcast": false}, "admins": ["U9"]});
        let (scene, openai) = (Scene::new(rules(), &config).await, OpenAi::start());
        openai.refuse_when(shows_an_image, status, json!({"error": {"code": status, "message": message}}));
        openai.push(Reply::Answer("I cannot see it.".into()));
        let mut asking = command(&scene.home, &scene.slack, &["--model", "openai:blind"]);
        asking.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", openai.url());
        let _gateway = Gateway::spawn(&scene.home, asking);
        assert!(scene.slack.await_connected(PATIENCE).await);
        let told = scene.answer("what is it?", vec![shot(640, 480)]).await;
        assert!(told.contains("The model's server refused the images") && told.contains("I cannot see it."), "{told}");
        let shown: Vec<bool> = openai.requests().iter().map(shows_an_image).collect();
        assert_eq!(shown, [true, false, true], "with the image, without it, and with nothing else");
        let alarmed = scene.slack.messages(&dm_channel("U9"));
        assert!(alarmed.is_empty(), "{alarmed:#?}");
    }
}

/// Images that had gone as a line of words each were counted as images, and everybody's conversations were measured by it.
#[tokio::test(flavor = "multi_thread")]
async fn images_that_were_left_out_taught_how_the_provider_counts() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    let taught = || {
        let path = scene.home.path().join("gateway/pmk-host.db");
        let store = rusqlite::Connection::open(path).expect("the store");
        let rows = "SELECT count(*) FROM calibration WHERE weight > 0";
        store.query_row(rows, [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    let heavy = |n: u32| Upload::new("shot.png", "image/png", [png(1_000, 1_000 + n), vec![0; 3 << 20]].concat());
    scene.answer("which of these?", (0..8).map(heavy).collect()).await;
    scene.home.await_events("turn.processed", 1);
    assert_eq!((images(&scene.last()).len(), taught()), (6, 1));
    let other = scene.slack.dm("U2", "hello");
    scene.slack.await_reply(&other, PATIENCE).await.expect("an answer");
    scene.home.await_events("turn.processed", 2);
    assert_eq!(taught(), 1);
}

/// All images of a conversation were read for each request, however many it had, and most of them were then left out.
#[tokio::test(flavor = "multi_thread")]
async fn images_that_no_request_had_room_for_were_read_into_memory_for_each() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    let heavy = |n: u32| Upload::new("shot.png", "image/png", [png(1, 1 + n), vec![0; 3 << 20]].concat());
    for round in 0..3 {
        scene.answer("and these?", (0..10).map(|n| heavy(10 * round + n)).collect()).await;
    }
    let read = || {
        let counted = std::fs::read_to_string(format!("/proc/{}/io", gateway.pid())).expect("Linux's /proc");
        let bytes = counted.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok());
        bytes.expect("a count") >> 20
    };
    let before = read();
    scene.answer("which was best?", vec![]).await;
    let (read, sent) = (read() - before, images(&scene.last()).len());
    assert_eq!(sent, 6, "as many as have room");
    assert!(read < 40, "{read} MiB were read for {sent} images of 3 MiB, of 30");
    scene.behaved();
}

/// A page from a proxy on the way, instead of an answer, cost the conversation its images.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_instead_of_an_answer_is_not_taken_for_a_refusal_of_the_images() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    scene.answer("what is it?", vec![shot(640, 480)]).await;
    for (status, name, value) in [(200, "content-type", "text/html"), (302, "location", "/login")] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        scene.anthropic.push(Behaviour::Error { status, headers, body: "<html>please log in</html>".into() });
        let told = scene.answer("and what else?", vec![]).await;
        assert!(told.starts_with(":x: The model could not be reached"), "{told}");
        scene.answer("and now?", vec![]).await;
        assert_eq!(images(&scene.last()).len(), 1);
    }
}

/// Once, any passing fault of a server hid all images of a conversation for good.
#[tokio::test(flavor = "multi_thread")]
async fn one_odd_refusal_does_not_hide_the_images_for_good() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    scene.anthropic.push(Behaviour::error(400, "invalid_request_error", "the wombat is asleep"));
    scene.anthropic.push(Behaviour::answer("I cannot see it."));
    let told = scene.answer("what is it?", vec![shot(640, 480)]).await;
    assert!(told.contains("this answer was written without them") && told.contains("I cannot see it."), "{told}");
    scene.answer("and now?", vec![]).await;
    let with_images: Vec<usize> = scene.anthropic.requests().iter().map(|asked| images(asked).len()).collect();
    assert_eq!(with_images, [1, 0, 1, 1], "with it, without it, with nothing else, and the next question");
}

/// Once, what a server says of something else was taken for a refusal of the images.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_is_known_to_be_another_is_not_the_images() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    scene.answer("what is it?", vec![shot(640, 480)]).await;
    let fault = "temperature must be between 0 and 1";
    scene.anthropic.push(Behaviour::error(400, "invalid_request_error", fault));
    let told = scene.answer("and what else?", vec![]).await;
    assert!(told.starts_with(":x:"), "{told}");
    scene.answer("and now?", vec![]).await;
    let with_images: Vec<usize> = scene.anthropic.requests().iter().map(|asked| images(asked).len()).collect();
    assert_eq!(with_images, [1, 1, 1]);
}

/// Once, images were hidden for good because of a model that is never shown any.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_shown_no_images_refuses_none() {
    let scene = scene(json!({})).await;
    let gateway = scene.start().await;
    scene.answer("what is it?", vec![shot(640, 480)]).await;
    assert!(gateway.terminate().success());
    // It fails once, without a result; then it answers.
    let script = scene.home.write("claude.script", "err no image\nexit 1\n---\nanswer I cannot see it.");
    let words = stand_in("claude", &script).join("' '");
    let folder = tempfile::tempdir().expect("a folder");
    let claude = folder.path().join("claude");
    std::fs::write(&claude, format!("#!/bin/sh\nexec '{words}' \"$@\"\n")).expect("a program");
    std::fs::set_permissions(&claude, PermissionsExt::from_mode(0o755)).expect("a mode");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut asking = command(&scene.home, &scene.slack, &["--model", "claude-cli"]);
    asking.env("PATH", format!("{}:{path}", folder.path().display()));
    let gateway = Gateway::spawn(&scene.home, asking);
    assert!(scene.slack.await_connected(PATIENCE).await);
    let told = scene.answer("and there?", vec![]).await;
    assert!(told.starts_with(":x:"), "{told}");
    assert!(gateway.terminate().success());
    let _gateway = scene.start().await;
    scene.answer("and now?", vec![]).await;
    assert_eq!(images(&scene.last()), [png(640, 480)]);
}

/// What is refused for another reason is not taken for the images' fault.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_without_images_too_leaves_them_where_they_are() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    scene.anthropic.push(Behaviour::error(400, "invalid_request_error", "the wombat is asleep"));
    scene.anthropic.push(Behaviour::error(400, "invalid_request_error", "the wombat is asleep"));
    let told = scene.answer("what is it?", vec![shot(640, 480)]).await;
    assert!(!told.contains("refused the images"), "{told}");
    let with_images: Vec<usize> = scene.anthropic.requests().iter().map(|asked| images(asked).len()).collect();
    assert!(with_images.starts_with(&[1]) && with_images.contains(&0), "{with_images:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_images_never_exceed_the_window() {
    let scene = scene(json!({})).await;
    scene.anthropic.set_window(16_000);
    let _gateway = Gateway::asking(&scene.home, &scene.slack, &scene.anthropic, &["--window", "16000"]);
    assert!(scene.slack.await_connected(PATIENCE).await);
    for _ in 0..4 {
        scene.answer("and these?", (0..6).map(|_| shot(1_000, 1_000)).collect()).await;
    }
    let counts: Vec<usize> = scene.anthropic.requests().iter().map(|asked| images(asked).len()).collect();
    assert!(counts.iter().all(|&count| (1..12).contains(&count)), "{counts:?}");
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_run_again_shows_the_same_image_and_fetches_it_once() {
    let config = json!({"version": 1, "language": "en", "presence": {"broadcast": false}});
    let scene = Scene::new(rules_for_kills(), &config).await;
    let gateway = scene.start().await;
    scene.anthropic.hold();
    let asked = scene.slack.dm_with_file("U1", "look", shot(30, 30));
    until_async("the model is asked", || (!scene.anthropic.requests().is_empty()).then_some(())).await;
    gateway.kill();
    scene.slack.fault("download", Fault::Status(404));
    scene.anthropic.release();
    let _gateway = scene.start().await;
    scene.slack.await_reply(&asked, PATIENCE).await.expect("an answer");
    let requests = scene.anthropic.requests();
    assert!(requests.len() >= 2 && requests.iter().all(|asked| images(asked) == [png(30, 30)]));
    assert_eq!(scene.fetched().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_goes_with_the_question_that_is_deleted() {
    let scene = scene(json!({})).await;
    let _gateway = scene.start().await;
    let asked = scene.slack.dm_with_file("U1", "look", shot(30, 30));
    scene.slack.await_reply(&asked, PATIENCE).await.expect("an answer");
    let kept = || {
        let path = scene.home.path().join("gateway/pmk-host.db");
        let store = rusqlite::Connection::open(path).expect("the store");
        store.query_row("SELECT count(*) FROM image", [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    assert_eq!(kept(), 1);
    scene.slack.take_back(&asked);
    until_async("the image is erased", || (kept() == 0).then_some(())).await;
    scene.answer("what was it?", vec![]).await;
    let last = scene.last();
    assert!(images(&last).is_empty() && !last.body.to_string().contains("shot.png"), "{:#}", last.body);
}
