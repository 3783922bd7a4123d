//! Every key of gateway.json: its meaning, its allowed values, and its default.

use std::{net::SocketAddr, ops::RangeInclusive};

use pmk_core::Language;
use pmk_knowledge::Ingest;
use pmk_models::http;
use serde_json::{Value, json};

use super::{
    HealthConfig, HourlyConfig, LedgerConfig, LimitsConfig, MraConfig, PolicyConfig, PolicyLimits, PresenceConfig,
    QueueConfig, SessionsConfig, VERSION,
    experiment::{LONGEST_NAME, MAX_WEIGHT, is_name},
    shape::{Key, Shape, Unknown, plainly},
    slack,
};
use crate::{access::audience::Audience, database::Database};

/// Any number of times.
const ANY: RangeInclusive<u64> = 0..=u32::MAX as u64;

/// The store that is a file in the home.
pub const SQLITE: &str = "sqlite";

/// A hundred years: nobody means a larger number of months.
const MOST_MONTHS: u64 = 1_200;

/// A hundred years, too.
pub const MOST_DAYS: u64 = 36_500;

/// The whole file.
pub fn file() -> Shape {
    Shape::Object { keys: keys(), unknown: Unknown::Told }
}

/// The keys of the file.
pub fn keys() -> Vec<Key> {
    vec![
        Key::new("version", Shape::Whole(VERSION..=VERSION), "The version of the format.").needed(),
        Key::new("model", text(), "The model: PROVIDER[:NAME]. Default: claude-cli if a Slack token, here or in the environment, or apiKey is set, otherwise sim.")
            .or_null(),
        Key::new("apiKey", Shape::Secret, "The API key of the model: of OpenAI or its server if `model` is `openai`, otherwise of Anthropic.")
            .after("ANTHROPIC_API_KEY")
            .or_null(),
        Key::new("baseUrl", address(), "The address of the provider, if it is not the default one: https, or http on this machine.")
            .after("ANTHROPIC_BASE_URL")
            .or_null(),
        Key::new("slack", Shape::Object { keys: slack::keys(), unknown: Unknown::Told }, "Slack's two tokens, and how the bot behaves there.").or_null(),
        Key::new("admins", users(), "User ids of those who may change the gateway from Slack and are told when something needs a person.")
            .or(json!([]))
            .or_null(),
        Key::new("blocklist", users(), "User ids of those whose messages and actions have no effect.").or(json!([])).or_null(),
        Key::new("audience", Shape::Object { keys: audience(), unknown: Unknown::Told }, "Who the readers are, and so how the model speaks to them.")
            .or_null()
            .forgiven(),
        Key::new("escalation", Shape::Object { keys: escalation(), unknown: Unknown::Told }, "Whom to ask when the model cannot find an answer.")
            .or_null()
            .forgiven(),
        Key::new("defaultIngest", ingest(), "The documents that open a conversation: mra:--all or dir:PATH.").or_null(),
        Key::new("mraWorkspace", text(), "The folder of the repositories. Default: the workspace above the working directory.")
            .after("PMK_MRA_WORKSPACE")
            .or_null(),
        Key::new("mra", Shape::object(mra()), "How mra is called.").or_null(),
        Key::new("policy", Shape::object(policy()), "Which policies decide, with which settings and within which limits.").or_null(),
        Key::new("experiment", experiment(), "Policies that are compared on live conversations.").or_null(),
        Key::new("limits", Shape::object(limits()), "How long things may take.").or_null(),
        Key::new("language", word(Language::ALL.map(Language::tag), true), "The language of what the gateway itself says.")
            .or_null(),
        Key::new("tools", word(["auto", "fenced"], false), "How the model asks for mra and for people: by tool calls if the provider supports them, or always by fenced directives.")
            .or("auto")
            .or_null(),
        Key::new("store", store(), "Where conversations are kept: `sqlite`, in the home, or `postgres://USER@HOST/DATABASE`.")
            .or(SQLITE)
            .after("PMK_STORE")
            .or_null(),
        Key::new("storePassword", Shape::Secret, "The password of that database, if it is not in `store`.").or_null(),
        Key::new("queue", Shape::object(queue()), "What happens to messages that arrive while one is being answered.").or_null(),
        Key::new("hourly", Shape::object(hourly()), "How many questions to others are allowed per hour, for one person and for one conversation.")
            .or_null(),
        Key::new("historyTurns", Shape::Whole(1..=u32::MAX.into()), "The largest number of turns of a direct message that stay in view.")
            .or_null(),
        Key::new("presence", Shape::object(presence()), "What people are told when the gateway is away.").or_null(),
        Key::new("health", Shape::object(health()), "Where health probes are answered.").or_null(),
        Key::new("ledger", Shape::object(ledger()), "How long the ledger is kept.").or_null(),
        Key::new("sessions", Shape::object(sessions()), "How long conversations are kept.").or_null(),
        Key::new("github", Shape::Kept, "pmk's; kept, not used."),
        Key::new("review", Shape::Kept, "pmk's; kept, not used."),
    ]
}

fn audience() -> Vec<Key> {
    let one = || word(Audience::ALL.map(Audience::name), true);
    let by_id = |name, about| Key::new(name, Shape::Map(Box::new(one())), about).or(json!({}));
    vec![
        Key::new("default", one(), "The audience of everybody else.").or(Audience::FALLBACK.name()),
        by_id("users", "By user id."),
        by_id("channels", "By channel id."),
        Key::new("domainExamples", Shape::Kept, "pmk's; kept, not used."),
    ]
}

fn escalation() -> Vec<Key> {
    vec![
        Key::new("default", users(), "User ids, for every repository without its own.").or(json!([])),
        Key::new("repos", Shape::Map(Box::new(users())), "User ids by repository.").or(json!({})),
    ]
}

fn mra() -> Vec<Key> {
    let MraConfig { command, environment, time_limit_seconds } = MraConfig::default();
    vec![
        Key::new("command", Shape::Command, "The program and its first arguments.").or(command),
        Key::new("environment", texts(), "Environment variables that are passed to it besides the harmless ones.")
            .or(environment),
        Key::new("timeLimitSeconds", Shape::Seconds, "How long one call may take.").or(seconds(time_limit_seconds)),
    ]
}

fn policy() -> Vec<Key> {
    let PolicyConfig { files, settings, seed_may_go, allow: _, no_wasi, limits: _ } = PolicyConfig::default();
    let digest = Shape::Like {
        is_it: |text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        pattern: "^[0-9A-Fa-f]{64}$".to_owned(),
        noun: "a sha256 of 64 hexadecimal digits, as `policy inspect` shows it".to_owned(),
        shown: plainly,
    };
    vec![
        Key::new(
            "files",
            texts(),
            "Policies that come with the program, by name, or component files, the last on top.",
        )
        .or(json!(files)),
        Key::new("settings", Shape::Map(Box::new(Shape::Free)), "Settings by policy, then by setting.")
            .or(json!(settings)),
        Key::new("seedMayGo", Shape::Flag, "Whether a policy may remove the seed pair.").or(seed_may_go),
        Key::new(
            "allow",
            Shape::list(digest, "a list of digests"),
            "SHA-256 of every component that may be loaded; without it, all may.",
        )
        .or_null(),
        Key::new("noWasi", Shape::Flag, "Whether components that import anything beyond the contract are refused.")
            .or(no_wasi),
        Key::new(
            "limits",
            Shape::object(policy_limits()),
            "Limits for a decision, for compiling, and for the size of a component.",
        ),
    ]
}

fn policy_limits() -> Vec<Key> {
    let mut defaults = PolicyLimits::default();
    let each = defaults.each();
    each.map(|limit| Key::new(limit.name, Shape::Whole(limit.range), limit.about).or(*limit.value)).into()
}

/// An experiment, in the file or given by itself.
pub fn experiment() -> Shape {
    Shape::object(of_an_experiment())
}

fn of_an_experiment() -> Vec<Key> {
    let name = |about| move |key| Key::new(key, name_of_an_experiment(), about).needed();
    let policy = vec![
        Key::new("files", texts(), "Like policy.files.").or(json!([])),
        Key::new("settings", Shape::Map(Box::new(Shape::Free)), "Like policy.settings.").or(json!({})),
    ];
    let arm = vec![
        name("Its name.")("name"),
        Key::new("policy", Shape::object(policy), "Its policies; without it, the ones in use otherwise.").or_null(),
        Key::new(
            "weight",
            Shape::Whole(0..=MAX_WEIGHT.into()),
            "Its share of new conversations, relative to the other weights.",
        )
        .or(1)
        .or_null(),
        Key::new("shadow", Shape::Flag, "It decides and is recorded, but its decisions have no effect.").or(false),
    ];
    let arms = Shape::List { of: Box::new(Shape::object(arm)), least: 2, most: None, noun: "a list of arms" };
    vec![
        name("What it is known by; another name is another experiment.")("name"),
        Key::new(
            "start",
            Shape::Moment,
            "When conversations start to get an arm; without it, the experiment does not run.",
        )
        .or_null(),
        name("The arm that the others are compared with.")("control"),
        Key::new("arms", arms, "The arms, including the control.").needed(),
    ]
}

fn name_of_an_experiment() -> Shape {
    Shape::Like {
        is_it: is_name,
        pattern: format!(r"^[\p{{Alphabetic}}\p{{N}}._-]{{1,{LONGEST_NAME}}}$"),
        noun: format!("up to {LONGEST_NAME} letters, digits, `-`, `_` and `.`"),
        shown: plainly,
    }
}

fn limits() -> Vec<Key> {
    let LimitsConfig { model_idle_seconds, model_total_seconds, slack_call_seconds, progress_seconds } =
        LimitsConfig::default();
    vec![
        Key::new("modelIdleSeconds", Shape::Seconds, "Between two pieces of an answer.")
            .or(seconds(model_idle_seconds)),
        Key::new("modelTotalSeconds", Shape::Seconds, "For a whole answer.").or(seconds(model_total_seconds)),
        Key::new("slackCallSeconds", Shape::Seconds, "For one call of Slack's Web API.")
            .or(seconds(slack_call_seconds)),
        Key::new("progressSeconds", Shape::Seconds, "Between two lines of progress on one message.")
            .or(seconds(progress_seconds)),
    ]
}

fn queue() -> Vec<Key> {
    let QueueConfig { mode: _, debounce_ms, most } = QueueConfig::default();
    let mode = word(["sequential", "collect", "steer"], false);
    vec![
        Key::new(
            "mode",
            mode,
            "Each by itself, all that arrived in the meantime together, or also those that arrive while something is looked up.",
        )
        .or("sequential"),
        Key::new("debounceMs", Shape::Whole(0..=60_000), "How long to wait for more if several have arrived.")
            .or(debounce_ms),
        Key::new("most", Shape::Whole(1..=100), "The largest number that is answered together.").or(most),
    ]
}

fn hourly() -> Vec<Key> {
    let HourlyConfig { escalations, mra_questions } = HourlyConfig::default();
    vec![
        Key::new("escalations", Shape::Whole(ANY), "Questions to people; 0 switches it off.").or(escalations),
        Key::new("mraQuestions", Shape::Whole(ANY), "Questions to mra; 0 switches it off.").or(mra_questions),
    ]
}

fn presence() -> Vec<Key> {
    let PresenceConfig { broadcast, read_missed } = PresenceConfig::default();
    vec![
        Key::new("broadcast", Shape::Flag, "Whether people are told when the gateway goes away and comes back.")
            .or(broadcast),
        Key::new("readMissed", Shape::Flag, "Whether messages written in the meantime are read back and answered.")
            .or(read_missed),
    ]
}

fn health() -> Vec<Key> {
    let HealthConfig { listen: None } = HealthConfig::default() else { unreachable!("nothing listens unless told") };
    let address = Shape::Like {
        is_it: |text| text.parse::<SocketAddr>().is_ok(),
        pattern: r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$".to_owned(),
        noun: "an address with a port, such as `127.0.0.1:8086`".to_owned(),
        shown: plainly,
    };
    vec![
        Key::new("listen", address, "The address that answers /healthz and /readyz over HTTP; without it none does.")
            .or_null(),
    ]
}

fn ledger() -> Vec<Key> {
    let LedgerConfig { keep_months: None } = LedgerConfig::default() else { unreachable!("all is kept unless told") };
    vec![
        Key::new(
            "keepMonths",
            Shape::Whole(1..=MOST_MONTHS),
            "For how many months files are kept, including the current one; without it, all are kept.",
        )
        .or_null(),
    ]
}

fn sessions() -> Vec<Key> {
    let SessionsConfig { keep_days: None } = SessionsConfig::default() else {
        unreachable!("all are kept unless told")
    };
    vec![
        Key::new(
            "keepDays",
            Shape::Whole(1..=MOST_DAYS),
            "For how many days a conversation is kept in which nobody writes any more; without it, all are kept.",
        )
        .or_null(),
    ]
}

/// A default in its usual notation: 60, not 60.0.
fn seconds(seconds: f64) -> Value {
    if seconds.fract() == 0.0 { json!(seconds as u64) } else { json!(seconds) }
}

fn ingest() -> Shape {
    Shape::Like {
        // An empty string counts as none.
        is_it: |text| text.trim().is_empty() || text.parse::<Ingest>().is_ok(),
        pattern: r"^\s*((mra:--all|dir:.*\S)\s*)?$".to_owned(),
        noun: "`mra:--all` or `dir:PATH`".to_owned(),
        shown: plainly,
    }
}

fn store() -> Shape {
    Shape::Like {
        // Errors in the address are reported where it is used, and by `config check`.
        is_it: |text| text == SQLITE || Database::is_meant(text),
        pattern: r"^(sqlite|postgres(ql)?://\S+)$".to_owned(),
        noun: "`sqlite` or `postgres://USER@HOST/DATABASE`".to_owned(),
        shown: |text| match text {
            SQLITE => Some(text.to_owned()),
            // The name of the database, without its password.
            text => Database::parse(text).ok().map(|database| database.name().to_owned()),
        },
    }
}

/// An address that the API key may be sent to.
fn address() -> Shape {
    Shape::Like {
        is_it: |text| text == text.trim() && http::base_url("baseUrl", text, true).is_ok(),
        pattern: r"^(https://[^\s/?#@]+|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?)(/[^\s?#]*)?$"
            .to_owned(),
        noun: "an `https://` address, or an `http://` address of this machine".to_owned(),
        shown: plainly,
    }
}

fn word<const N: usize>(words: [&'static str; N], any_case: bool) -> Shape {
    Shape::Word { words: words.to_vec(), any_case }
}

fn text() -> Shape {
    Shape::Text("a string")
}

fn texts() -> Shape {
    Shape::list(text(), "a list of strings")
}

fn users() -> Shape {
    Shape::list(Shape::Person, "a list of user ids")
}

/// The JSON Schema (draft 2020-12) of the file.
pub fn schema() -> Value {
    let mut schema = file().schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "gateway.json of pmk-host".into();
    schema
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, SchemaIndex, Schemas};

    use super::*;
    use crate::config::Config;

    /// The schema as an independent validator reads it.
    struct Validator(Schemas, SchemaIndex);

    impl Validator {
        fn new() -> Validator {
            let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
            compiler.enable_format_assertions();
            compiler.add_resource("gateway.json", schema()).expect("a schema");
            let index = compiler.compile("gateway.json", &mut schemas).expect("a schema that can be used");
            Validator(schemas, index)
        }

        fn takes(&self, document: &Value) -> bool {
            self.0.validate(document, self.1).is_ok()
        }
    }

    /// Values around the limits of every shape, valid or not.
    fn values(shape: &Shape) -> Vec<Value> {
        let mut values =
            vec![json!(true), json!("x"), json!(-1), json!(0.5), json!([]), json!({}), json!([1]), json!([[]])];
        match shape {
            Shape::Whole(range) => {
                let (from, to) = (*range.start(), *range.end());
                values.extend([from.saturating_sub(1), from, to, to + 1].map(Value::from));
            }
            Shape::Seconds => values.extend([json!(0), json!(1e-9), json!(1.8e19), json!(1.9e19)]),
            Shape::Word { words, .. } => values.extend(words.iter().map(|word| json!(word))),
            Shape::Like { .. } => {
                let digest = "0f".repeat(32);
                values
                    .extend([digest.clone(), digest + "a", "a b".into(), "ü1".into(), "n".repeat(65)].map(Value::from));
                values.extend(["mra:--all", "mra:", "dir:/x", " dir: ", "", " "].map(Value::from));
                values.extend(
                    ["https://a.example/v1", "http://[::1]:1/v1", "http://localhost:11434/v1"].map(Value::from),
                );
                values.extend(
                    ["http://a.example/v1", "https://u:p@a.example", "https://a?b", "ftp://a"].map(Value::from),
                );
                values.extend(["127.0.0.1:8086", "[::1]:0", "localhost:80", "127.0.0.1"].map(Value::from));
            }
            Shape::Moment => values.extend(["2026-05-07T09:00:00Z", "tomorrow"].map(Value::from)),
            Shape::Secret => {
                values.extend([
                    json!({"env": "A"}),
                    json!({"cmd": "b"}),
                    json!({"file": "/c"}),
                    json!({"file": "c"}),
                    json!({"file": "c/d"}),
                    json!({"file": ".."}),
                    json!({"file": ".c"}),
                    json!({"env": "A", "cmd": "b"}),
                    json!({"env": 1}),
                ]);
            }
            Shape::Command => values.extend([json!([" "]), json!(["mra", 1]), json!(["mra", "x"])]),
            Shape::List { of, most, .. } => {
                if let (Some(most), Some(item)) = (most, good(of)) {
                    values.extend([json!(vec![item.clone(); *most]), json!(vec![item; most + 1])]);
                }
                values.extend(self::values(of).into_iter().flat_map(|item| [json!([item]), json!([item, item])]));
            }
            Shape::Map(of) => values.extend(self::values(of).into_iter().map(|value| json!({"any": value}))),
            Shape::Object { keys, .. } => {
                values.push(json!({"surprise": 1}));
                let whole: serde_json::Map<String, Value> = keys
                    .iter()
                    .filter(|key| key.is_needed)
                    .filter_map(|key| Some((key.name.to_owned(), good(&key.shape)?)))
                    .collect();
                for key in keys {
                    for value in self::values(&key.shape).into_iter().chain([Value::Null]) {
                        let mut object = whole.clone();
                        object.insert(key.name.to_owned(), value);
                        values.push(object.into());
                    }
                    let mut without = whole.clone();
                    without.remove(key.name);
                    values.push(without.into());
                }
            }
            Shape::Kept | Shape::Free | Shape::Text(_) | Shape::Person | Shape::Flag => {}
        }
        values
    }

    /// A valid value.
    fn good(shape: &Shape) -> Option<Value> {
        if let Shape::List { of, .. } = shape {
            let Shape::Object { .. } = **of else { return Some(json!([])) };
            return Some(json!([{"name": "a"}, {"name": "b"}]));
        }
        values(shape).into_iter().find(|value| {
            let mut problems = vec![];
            shape.look("", value, &mut problems);
            problems.is_empty()
        })
    }

    #[test]
    fn the_schema_takes_what_the_gateway_takes_and_nothing_else() {
        let validator = Validator::new();
        let (mut taken, mut refused) = (0, 0);
        for document in values(&file()) {
            let mut problems = vec![];
            file().look("", &document, &mut problems);
            // Forgiven values only cause warnings, but the schema still rejects them.
            let forgiven = ["audience", "escalation"].iter().any(|key| document.get(key).is_some());
            let is_well = problems.iter().all(|problem| !problem.is_grave);
            assert!(forgiven || validator.takes(&document) == is_well, "{document}: {problems:?}");
            if is_well { taken += 1 } else { refused += 1 }
        }
        assert!(taken > 150 && refused > 400, "{taken}, {refused}");
    }

    /// A file in which every value has the right shape is read, or refused with an error message of the gateway's own.
    #[test]
    fn what_has_the_right_shape_can_be_read() {
        for document in values(&file()).into_iter().filter(|document| document["version"] == 1) {
            let (config, problems) = Config::parse(&document.to_string(), std::path::Path::new(""));
            assert_eq!(config.is_some(), problems.iter().all(|problem| !problem.is_grave), "{document}");
            let of_serde =
                |what: &str| ["invalid type", "invalid value", "missing field"].iter().any(|it| what.contains(it));
            assert!(problems.iter().all(|problem| !of_serde(&problem.what)), "{document}: {problems:?}");
        }
    }

    #[test]
    fn every_key_is_described_in_one_line() {
        fn look(keys: &[Key]) {
            for key in keys {
                assert!(key.about.ends_with('.') && !key.about.contains('\n'), "{}", key.name);
                if let Shape::Object { keys, .. } = &key.shape {
                    look(keys);
                }
            }
        }
        look(&keys());
    }

    #[test]
    fn the_example_of_the_reference_is_valid() {
        let page = include_str!("../../../../docs/settings.md");
        let (_, rest) = page.split_once("```json\n").expect("an example");
        let (example, _) = rest.split_once("```").expect("its end");
        let example: Value = serde_json::from_str(example).expect("JSON");
        assert!(Validator::new().takes(&example));
        let keys = example.as_object().expect("an object").keys();
        assert!(keys.count() > 10);
    }
}
