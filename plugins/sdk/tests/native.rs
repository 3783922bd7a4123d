//! The native side: reading, settings, logs, and what the harness rejects.

use std::sync::Arc;

use pmk_policy_sdk::{
    BooleanSetting, Budget, Description, IntegerSetting, Plan, Policy, Prune, TextSetting, Transcript, export, flag,
    level, log,
    testing::{Conversation, Harness, core},
};

const LIMIT: IntegerSetting = IntegerSetting::new("limit", 7, 1..=9, "a number");
const LOUD: BooleanSetting = BooleanSetting::new("loud", false, "a switch");
const GREETING: TextSetting = TextSetting::new("greeting", "你好", "a string");

/// Logs what it reads, and returns an empty plan.
struct Reader;

impl Policy for Reader {
    fn describe(description: &Description) {
        description.name("reader");
        description.version("1.2.3");
        LIMIT.declare(description);
        LOUD.declare(description);
        GREETING.declare(description);
    }
}

impl Prune for Reader {
    fn prune(transcript: &Transcript, budget: &Budget, _plan: &Plan) {
        log(level::INFO, &format!("{} {} {}", LIMIT.value(), LOUD.value(), GREETING.value()));
        log(level::DEBUG, &format!("{} of {}", transcript.total_tokens(), budget.limit()));
        for segment in transcript.segments() {
            log(level::TRACE, &format!("{}..{} {}", segment.start, segment.end, segment.turns()));
        }
        assert!(transcript.tokens(5, 2).is_empty() && transcript.tokens(90, 99).is_empty());
        assert_eq!(transcript.text(99, 0, 9), "");
    }
}

export!(Reader: prune);

#[test]
fn settings_have_their_defaults_until_they_are_given() {
    let transcript = Conversation::new().turn("q", "a").transcript();
    let harness = Harness::<Reader>::new();
    harness.plan(&transcript, 100);
    assert_eq!(harness.log()[0], (level::INFO, "7 false 你好".to_owned()));
    let harness = harness.with("limit", 9).with("loud", true).with("greeting", "hi");
    harness.plan(&transcript, 100);
    assert_eq!(harness.log()[0], (level::INFO, "9 true hi".to_owned()));
}

#[test]
#[should_panic(expected = "setting `limit` must be within 1 to 9")]
fn a_value_out_of_range_is_refused() {
    let _ = Harness::<Reader>::new().with("limit", 10);
}

#[test]
#[should_panic(expected = "`reader` has no setting `limits`")]
fn an_unknown_setting_is_refused() {
    let _ = Harness::<Reader>::new().with("limits", 1);
}

#[test]
#[should_panic(expected = "setting `loud` is a boolean, not an integer")]
fn an_ill_typed_setting_is_refused() {
    let _ = Harness::<Reader>::new().with("loud", 1);
}

/// A test had to build message by message what is in a file.
#[test]
fn a_recorded_conversation_could_not_be_read_from_its_file() {
    let file = r#"{"messages": [
        {"role": "user", "content": "what is in it?"}, {"role": "assistant", "content": "nothing"},
        {"role": "user", "content": "look again"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "cat", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "something"}]}]}"#;
    let transcript = Conversation::recorded(file).transcript();
    assert_eq!((transcript.len(), transcript.turns(), transcript.new_message()), (5, 1, Some(2)));
    let lines = "{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":\"assistant\",\"content\":\"a\"}\n";
    assert_eq!(Conversation::recorded(lines).transcript().new_message(), None);
}

/// Declares a default that is out of range.
struct Careless;

impl Policy for Careless {
    fn describe(description: &Description) {
        description.name("careless");
        IntegerSetting::new("limit", 10, 1..=9, "a number").declare(description);
    }
}

#[test]
#[should_panic(expected = "the default of setting `limit` is not within 1 to 9")]
fn a_default_out_of_range_is_refused() {
    let _ = Harness::<Careless>::new();
}

/// Declares what is never a setting for the host.
struct Sprawling;

impl Policy for Sprawling {
    fn describe(description: &Description) {
        description.name("sprawling");
        description.setting_boolean("Loud_2", false, "a switch");
        description.setting_text("greeting", &"x".repeat(2_001), "a string");
        (0..99).for_each(|at| description.setting_boolean(&format!("switch-{at}"), false, "a switch"));
    }
}

/// Regression: a policy whose tests passed was refused by the host.
#[test]
fn what_the_host_refuses_of_a_description_the_harness_refuses_too() {
    let refused = std::panic::catch_unwind(Harness::<Sprawling>::new).err().expect("a refusal");
    let reason = refused.downcast_ref::<String>().expect("a reason");
    for mistake in
        ["`Loud_2` is no name", "default of setting `greeting` is longer than 2000", "more than 100 settings"]
    {
        assert!(reason.contains(mistake), "{reason}");
    }
}

/// Has the name of the host's own decisions.
struct Floor;

impl Policy for Floor {
    fn describe(description: &Description) {
        description.name("floor");
    }
}

#[test]
#[should_panic(expected = "reserved for the host's own decisions")]
fn a_reserved_name_is_refused() {
    let _ = Harness::<Floor>::new();
}

#[test]
#[should_panic(expected = "setting `greeting` must have at most 2000 characters")]
fn a_text_that_is_too_long_is_refused() {
    let _ = Harness::<Reader>::new().with("greeting", "x".repeat(2_001).as_str());
}

#[test]
fn segments_are_read_newest_first_and_cover_the_stored_history() {
    let conversation = Conversation::new().seed("s").turn("q", "a").turn("q", "b").tool("ls", "x").answer("c");
    let harness = Harness::<Reader>::new();
    harness.plan(&conversation.ask("new").transcript(), 1_000);
    let read: Vec<String> = harness.log().into_iter().skip(2).map(|(_, line)| line).collect();
    assert_eq!(read, ["4..9 1", "2..4 1"]);
}

/// Compares the segments, which are read lazily, with the history read at once.
struct Counter;

impl Policy for Counter {
    fn describe(description: &Description) {
        description.name("counter");
    }
}

impl Prune for Counter {
    fn prune(transcript: &Transcript, _budget: &Budget, _plan: &Plan) {
        let all = transcript.rows(transcript.seed_end(), transcript.current());
        let mut segments: Vec<_> = transcript.segments().collect();
        segments.reverse();
        assert!(segments.iter().skip(1).all(|segment| segment.rows[0].has(flag::CUT)));
        assert!(segments.iter().all(|segment| segment.rows.len() as u32 == segment.end - segment.start));
        assert_eq!(segments.into_iter().flat_map(|segment| segment.rows.to_vec()).collect::<Vec<_>>(), all);
    }
}

#[test]
fn segments_hold_every_message_once_whatever_their_length() {
    for (turns, tools) in [(0, 0), (1, 0), (1, 200), (7, 40), (300, 0), (150, 3)] {
        let conversation = (0..turns).fold(Conversation::new().seed("s"), |conversation, _| {
            (0..tools).fold(conversation.turn("q", "a"), |conversation, _| conversation.tool("t", "r"))
        });
        Harness::<Counter>::new().plan(&conversation.ask("new").transcript(), 1_000);
    }
}

/// Searches more often than allowed, and logs the results.
struct Asker;

impl Policy for Asker {
    fn describe(description: &Description) {
        description.name("asker");
    }
}

impl Prune for Asker {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        let seen = transcript.search("launch", 9);
        plan.remove(0, 2);
        for _ in 0..8 {
            let found = transcript.search("when is the launch", 9);
            log(level::INFO, &format!("{seen:?} {found:?}"));
        }
        let (start, end) = (0, transcript.archived() + 9);
        assert_eq!(transcript.archived_origins(start, end), [1, 2, 1, 2]);
        let tokens = transcript.archived_tokens(start, end);
        assert!(tokens[0] > 0 && tokens[1] > 0 && tokens[2..] == [0, 0], "{tokens:?}");
        assert_eq!(transcript.archived_text(0, 4, 6), "launch");
        let before = plan.tokens();
        plan.recall(0, 4_000);
        assert_eq!(plan.tokens() - before, u64::from(budget.recall_tokens() + tokens[0]));
    }
}

export!(Asker: prune);

fn asked_for_the_launch() -> Arc<core::Transcript> {
    let conversation =
        Conversation::new().turn("the launch is on Friday", &"noted ".repeat(40)).turn("lunch?", "at noon");
    conversation.ask("when do we launch?").transcript()
}

/// Regression: `budget.recall_tokens` was always that of English.
#[test]
fn a_recall_block_in_chinese_was_said_to_cost_what_one_in_english_does() {
    let transcript = Arc::unwrap_or_clone(asked_for_the_launch()).speaking(core::Language::TraditionalChinese);
    Harness::<Asker>::new().prune(&Arc::new(transcript), 10_000).expect("a good plan");
}

#[test]
fn a_search_sees_what_the_plan_drops_and_there_are_eight() {
    let harness = Harness::<Asker>::new();
    let applied = harness.prune(&asked_for_the_launch(), 10_000).expect("a good plan");
    assert_eq!(applied.recall.map(|recall| recall.ids), Some(vec![0]));
    let found: Vec<String> = harness.log().into_iter().map(|(_, line)| line).collect();
    assert_eq!(found[..7], vec!["[] [0]"; 7]);
    assert_eq!(found[7], "[] []");
}

/// Removes the oldest message, whatever it is.
struct Blunt;

impl Policy for Blunt {
    fn describe(description: &Description) {
        description.name("blunt");
    }
}

impl Prune for Blunt {
    fn prune(_transcript: &Transcript, _budget: &Budget, plan: &Plan) {
        plan.remove(0, 1);
    }
}

#[test]
#[should_panic(expected = "`blunt` on `random_request(")]
fn an_unsound_policy_is_found_out() {
    Harness::<Blunt>::new().assert_sound(100);
}

/// Keeps the turns that fit.
struct Fitting;

impl Policy for Fitting {
    fn describe(description: &Description) {
        description.name("fitting");
    }
}

impl Prune for Fitting {
    fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
        if plan.tokens() > budget.limit() {
            let oldest_kept = transcript.newest_within(budget).last();
            plan.remove_before(transcript, oldest_kept.map_or(transcript.stored_end(), |segment| segment.start));
        }
    }
}

#[test]
fn what_fits_beside_the_rest_is_always_a_sound_plan() {
    Harness::<Fitting>::new().assert_sound(2_000);
}
