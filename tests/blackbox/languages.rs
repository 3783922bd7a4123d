//! One language, whole: whatever a gateway says, to people or to the model, is in its own; and which that is.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour, Recorded};
use regex::Regex;
use serde_json::{Value, json};

use crate::{
    knowledge::team::{CHINESE, CONTACT, ENGLISH, Story, Team},
    support::{Home, PATIENCE, component, finish, of_type, question},
    workspace::{Scene, rules},
};

const AUDIENCES: [(&str, &str); 4] = [("U1", "tech"), ("U2", "pm"), ("U3", "biz"), ("U4", "exec")];

/// Every text that reached a model or a person.
#[derive(Default)]
struct Read(Vec<String>);

impl Read {
    /// What a model was sent, but for what models write themselves.
    fn requests(&mut self, requests: &[Recorded]) {
        for request in requests {
            for part in ["system", "tools", "messages"] {
                self.value(&request.body[part]);
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.0.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(object) if object.get("role").is_some_and(|role| role == "assistant") => {}
            Value::Object(object) => object.values().for_each(|value| self.value(value)),
            _ => {}
        }
    }

    /// What people were shown in the console.
    fn lines(&mut self, lines: &[Value]) {
        for kind in ["reply", "notice"] {
            self.0.extend(of_type(lines, kind).iter().filter_map(|line| line["text"].as_str()).map(str::to_owned));
        }
    }

    /// These are among them: what is looked for has happened.
    fn hold(&self, parts: &[&str]) {
        let missing: Vec<&&str> =
            parts.iter().filter(|part| !self.0.iter().any(|text| text.contains(**part))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    fn are_english(&self) {
        let marker = Regex::new(r"\(此處省略 \d+ 輪較舊的對話以節省 context\)").expect("a pattern");
        let chinese = Regex::new(r"\p{Han}|[，。：；！？「」（）]").expect("a pattern");
        let odd: Vec<&String> = self.0.iter().filter(|text| chinese.is_match(&marker.replace_all(text, ""))).collect();
        assert!(odd.is_empty(), "{odd:#?}");
    }

    fn are_chinese(&self) {
        let code = Regex::new(r"(?s)```.*?```|`[^`\n]*`|<[^>\n]*>").expect("a pattern");
        let sentence = Regex::new(r"[A-Za-z]['A-Za-z]*(?:[ ,;:]+[A-Za-z]['A-Za-z]*){3,}").expect("a pattern");
        let odd: Vec<String> = self
            .0
            .iter()
            .filter_map(|text| sentence.find(&code.replace_all(text, "`…`")).map(|found| found.as_str().to_owned()))
            .collect();
        assert!(odd.is_empty(), "{odd:#?}");
    }
}

/// What the people of a story write to each other, and what the model answers.
struct Words {
    fact: &'static str,
    filler: &'static str,
    /// What that is estimated at.
    filler_tokens: usize,
    question: &'static str,
    answer: &'static str,
}

const ENGLISH_WORDS: Words = Words {
    fact: "The port of the service is",
    filler: "More of the same. ",
    filler_tokens: 4,
    question: "Which port has the service?",
    answer: "As you said.",
};
const CHINESE_WORDS: Words = Words {
    fact: "這個服務的連接埠是",
    filler: "還有其他類似的內容。",
    filler_tokens: 10,
    question: "這個服務用哪個連接埠？",
    answer: "如你所說。",
};

/// A home in which code can be looked into and somebody can be asked.
fn home(language: &str, more: &Value) -> Home {
    let home = Home::new();
    let mut config = json!({
        "version": 1, "language": language, "mra": {"command": ["echo"]}, "escalation": {"default": ["U9"]},
        "admins": ["U8"], "defaultIngest": format!("dir:{}", home.path().join("notes").display()),
        "audience": {"users": AUDIENCES.into_iter().collect::<std::collections::BTreeMap<_, _>>()},
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    home.write("gateway.json", config.to_string());
    std::fs::create_dir(home.path().join("notes")).expect("a folder");
    home.write("notes/a.md", "x".repeat(60_000));
    home
}

fn said_by(user: &str, event: &str, text: &str) -> String {
    let mut message: Value = serde_json::from_str(&question(event, text)).expect("a message");
    message["user"] = user.into();
    message["channel"] = format!("D{user}").into();
    message.to_string()
}

/// Every audience, with tools and with fences: what is found, and everything that can go wrong with a wish.
fn wishes(language: &str, words: &Words, read: &mut Read) {
    for (tools, (user, _)) in ["auto", "fenced"].into_iter().flat_map(|tools| AUDIENCES.map(|who| (tools, who))) {
        let home = home(language, &json!({"tools": tools, "hourly": {"escalations": 0, "mraQuestions": 2}}));
        let anthropic = Anthropic::start_blocking();
        if tools == "auto" {
            anthropic.push(Behaviour::calls([
                ("mra_ask", json!({"repo": "erp", "question": "port?"})),
                ("mra_ask", json!({"repo": "../x", "question": "port?"})),
                ("mra_ask", json!({"repo": "erp"})),
                ("bash", json!({})),
                ("escalate", json!({"question": words.question, "reason": words.fact})),
                ("escalate", json!({"question": words.question.repeat(300), "reason": words.fact})),
            ]));
        } else {
            anthropic.push(Behaviour::answer("```mra-ask\nrepo: erp\n```"));
            anthropic.push(Behaviour::answer("```mra-ask\nrepo: erp\nquestion: port?\n```"));
        }
        anthropic.push(Behaviour::answer(words.answer));
        let asked = said_by(user, "Ev1", words.question);
        read.lines(&finish(home.asking(&anthropic, &[]), &asked).ok().lines());
        read.requests(&anthropic.requests());
    }
}

/// Every way in which a conversation gets shorter.
fn shortening(language: &str, words: &Words, read: &mut Read) {
    for (policy, rotates) in [
        ("standard", false),
        ("rolling-summary", false),
        ("recall", false),
        ("standard", true),
        ("facts-summary", true),
    ] {
        let home = home(language, &json!({}));
        home.write("notes/a.md", "x");
        let (anthropic, component) = (Anthropic::start_blocking(), component(policy));
        (0..60).for_each(|_| anthropic.push(Behaviour::answer(words.answer)));
        let ask = |input: &[String]| {
            let command = home.asking(&anthropic, &["--policy", &component]);
            finish(command, &input.join("\n")).ok().lines()
        };
        let say = |event: usize, tokens: usize| {
            let filler = words.filler.repeat(tokens / words.filler_tokens);
            said_by("U1", &format!("Ev{event}"), &format!("{} {}\n{filler}", words.fact, 4_000 + event))
        };
        if rotates {
            // The last turn alone is larger than the window is then: neither trim nor compaction gets rid of it.
            anthropic.set_window(8_000);
            read.lines(&ask(&[say(0, 300), say(1, 4_400)]));
            anthropic.set_window(4_600);
        } else {
            anthropic.set_window(7_000);
            read.lines(&ask(&(0..24).map(|event| say(event, 300)).collect::<Vec<_>>()));
        }
        read.lines(&ask(&[said_by("U1", "EvQ", words.question)]));
        read.requests(&anthropic.requests());
    }
}

/// A question to people, their answer, what becomes of it, and who asks again; and a case.
async fn team(story: &'static Story, words: &Words, read: &mut Read) {
    let team = Team::new(story, "auto").await;
    let gateway = team.connect().await;
    let notice = team.learn().await;
    team.react(CONTACT, &notice, "white_check_mark").await;
    team.ask_similar("U0LATE").await;
    read.requests(&team.anthropic.requests());
    read.0.extend(
        team.slack.messages(crate::knowledge::team::CHANNEL).into_iter().filter(|it| it.by_bot).map(|it| it.text),
    );
    drop(gateway);

    let scene = Scene::new(rules(), &json!({"version": 1, "language": story.language})).await;
    let _gateway = scene.start().await;
    let fence = format!("{}\n\n```case-update\nhypothesis: {}\n```", words.answer, words.fact);
    (0..3).for_each(|_| scene.anthropic.push(Behaviour::answer(&fence)));
    for (text, messages) in [
        (format!("/pmk open {}", words.question), 1),
        (words.question.into(), 2),
        (words.question.into(), 1),
        ("/pmk close".into(), 1),
    ] {
        let before = scene.slack.replies("C1").len();
        scene.slack.mention("C1", "U1", &text, None);
        assert!(scene.slack.await_replies("C1", before + messages, PATIENCE).await, "no answer to `{text}`");
    }
    read.requests(&scene.anthropic.requests());
    read.0.extend(scene.slack.replies("C1").into_iter().map(|message| message.text));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_english_nothing_is_chinese_but_the_marker() {
    let mut read = Read::default();
    team(&ENGLISH, &ENGLISH_WORDS, &mut read).await;
    tokio::task::block_in_place(|| {
        wishes("en", &ENGLISH_WORDS, &mut read);
        shortening("en", &ENGLISH_WORDS, &mut read);
    });
    read.hold(&[
        "# Toolbox",
        "take them as ground truth",
        "by the seed cap of",
        "Retrieved from the team's knowledge base",
        "The question that was passed on has been answered",
        "You curate a team's knowledge base",
        "This channel has a case open",
        "What `mra ask",
        "is not the name of a repository",
        "such questions are switched off",
        "without `question`",
        "You compress the older part",
        "Notes on the earlier conversation",
        "goes on in a fresh session; notes",
        "The latest task; how far it got",
        "These facts were taken",
        "Recalled for the next message",
        "(此處省略 ",
    ]);
    read.are_english();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chinese_no_sentence_is_english() {
    let mut read = Read::default();
    team(&CHINESE, &CHINESE_WORDS, &mut read).await;
    tokio::task::block_in_place(|| {
        wishes("zh-TW", &CHINESE_WORDS, &mut read);
        shortening("zh-TW", &CHINESE_WORDS, &mut read);
    });
    read.hold(&[
        "# 你的能力",
        "我先把 workspace 的 PKB context 給你",
        "超過 seed cap",
        "從團隊知識庫找到的內容",
        "先前轉問的問題有回覆了",
        "你負責整理團隊的知識庫",
        "這個頻道有進行中的案件",
        "這是 `mra ask",
        "不是儲存庫的名稱",
        "這裡已關閉這項功能",
        "缺少 `question`",
        "對話中較舊的部分濃縮",
        "取代了較舊的訊息",
        "對話已在新的 session 繼續",
        "最近的一件事，做到哪裡",
        "以下是從中取出的事實",
        "看不到的部分找回來的內容",
        "(此處省略 ",
    ]);
    read.are_chinese();
}

/// The language in which a home without `language` answers, in this environment.
fn spoken(home: &Home, environment: &[(&str, &str)]) -> &'static str {
    let mut command = home.command(&["run", "--model", "sim", "--front", "console"]);
    command.env_remove("LANG").envs(environment.iter().copied());
    let lines = finish(command, &question("Ev1", "")).ok().lines();
    let said = of_type(&lines, "reply")[0]["text"].as_str().expect("a text").to_owned();
    if said.contains("這則訊息沒有文字可讀") { "zh-TW" } else { "en" }
}

#[test]
fn without_a_word_on_it_the_language_is_that_of_the_environment_or_english() {
    for (environment, language) in [
        (&[] as &[_], "en"),
        (&[("LANG", "zh_TW.UTF-8")], "zh-TW"),
        (&[("LANG", "zh_TW.UTF-8"), ("LC_ALL", "C")], "en"),
        (&[("LANG", "de_DE.UTF-8"), ("LC_MESSAGES", "zh_Hant")], "zh-TW"),
    ] {
        assert_eq!(spoken(&Home::new(), environment), language, "{environment:?}");
    }
}

#[test]
fn a_home_that_came_from_pmk_stays_chinese() {
    let english = [("LANG", "en_US.UTF-8")];
    let configured = |config: &str| {
        let home = Home::new();
        home.write("gateway.json", config);
        home
    };
    assert_eq!(spoken(&configured(r#"{"version":1,"slack":{"botUserId":"U0BOT"}}"#), &english), "zh-TW");
    assert_eq!(spoken(&configured(r#"{"version":1,"admins":["U0ADMIN"]}"#), &english), "en");
    let named = configured(r#"{"version":1,"language":"en","slack":{"botUserId":"U0BOT"}}"#);
    assert_eq!(spoken(&named, &[("LANG", "zh_TW.UTF-8")]), "en");
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("gateway/slack/users")).expect("pmk's conversations");
    assert_eq!(spoken(&home, &english), "zh-TW");
}

/// Once, what a shell shows beside a completion was English whatever the gateway spoke.
#[test]
fn completions_are_in_the_language_of_the_home() {
    for (language, about) in [("en", "Run the gateway"), ("zh-TW", "執行閘道")] {
        let home = Home::new();
        home.write("gateway.json", serde_json::json!({"version": 1, "language": language}).to_string());
        for shell in ["fish", "zsh"] {
            let script = home.run(&["completions", shell], "").ok().stdout;
            assert!(script.contains(about), "{shell} in {language}");
        }
    }
}

#[test]
fn help_and_status_are_in_the_language_of_the_home() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"zh-TW"}"#);
    let mut shown = String::new();
    for arguments in [&["--help"] as &[&str], &["policy", "--help"], &["policy", "new", "--help"], &["status"]] {
        let finished = home.run(arguments, "");
        shown.push_str(&format!("$ pmk-host {}\n{}\n", arguments.join(" "), finished.stdout));
    }
    insta::assert_snapshot!(shown);
}

/// Regression: what a start says of its choices was in the language of the gateway under `--json`, too.
#[test]
fn notices_of_a_start_are_english_for_programs() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"zh-TW"}"#);
    let start = |arguments: &[&str]| home.run(arguments, "").ok().stderr;
    let said = start(&["run", "--model", "sim", "--json"]);
    assert!(said.contains("front: console, because there are no Slack tokens"), "{said}");
    let said = start(&["run", "--model", "sim"]);
    assert!(said.contains("前端：console"), "{said}");
}
