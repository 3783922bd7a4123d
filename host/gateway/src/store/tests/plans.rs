//! A turn costs the same however much is archived: none of its statements scans a table.

use super::*;
use crate::store::{
    archive, asked, atom_files, calibrations, cases, changes, connection::CACHED_STATEMENTS, dump, erase,
    escalation_updates, escalations, events, experiments, following, handed_on, in_person, intake, lease, outgoing,
    presence, presses, proposals, reattached, receipt, receipts, reset, restore, retention, sessions, tools, turns,
    uses, window,
};

/// Every statement of a turn, and of a command on one conversation.
const BY_INDEX: &[&str] = &[
    intake::EXPIRED_SEEN,
    intake::FORGET_SEEN,
    intake::ASIDE,
    intake::FORGET_ASIDE,
    intake::IS_SEEN,
    intake::SEE,
    intake::OPEN_SESSION,
    intake::ENTER_SESSION,
    intake::ENTER_INBOX,
    intake::KNOWS_GROUP,
    following::FOLLOW,
    following::INTERRUPT,
    following::FOLLOWED,
    turns::beginning::FIND_QUESTION,
    turns::SET_VERBOSITY,
    turns::beginning::START,
    turns::PLACE,
    turns::STREAMED,
    turns::PLACED,
    turns::MAY_PLACE,
    turns::MAY_STREAM,
    turns::MESSAGE,
    turns::KEEP_ATTACHED,
    turns::recording::ANSWER,
    turns::recording::STANDING,
    turns::recording::ANSWERED_WITH,
    turns::recording::COUNT_TURNS,
    archive::NUMBER,
    archive::OF_TURN,
    archive::FORGET,
    archive::FORGET_MESSAGES,
    archive::LENGTH,
    archive::READ,
    archive::LENGTHS,
    turns::recording::ADD_PART,
    turns::delivering::FIRST_SENT,
    in_person::GOES,
    in_person::WENT,
    calibrations::LEARN,
    tools::LEARN,
    calibrations::RECALL_BOUNDS,
    calibrations::UNLEARN_BOUNDS,
    calibrations::LEARN_BOUND,
    escalations::FIND_MARKER,
    escalations::ASKED_AT,
    escalations::IS_WAITING,
    escalations::CLAIM,
    escalations::RELEASE_CLAIM,
    escalations::GIVE_UP,
    escalation_updates::IS_CLAIMING,
    escalation_updates::ABSORBED,
    escalations::LAST_ASKED,
    escalation_updates::AWAIT,
    escalations::IN_CHANNEL,
    escalations::UNDER,
    escalations::UNDER_WAY,
    escalations::NEWEST,
    escalations::ASKING,
    escalations::SENT_BY,
    escalations::OWN_THREADS,
    escalations::REACHES,
    escalations::ASKED_BY,
    handed_on::TAKE_OVER,
    handed_on::TAKE_BACK,
    handed_on::PARTS,
    handed_on::SET_PART,
    handed_on::KEEP_IMAGES,
    escalations::CLOSE,
    escalation_updates::FORGET_APART,
    escalation_updates::FORGET_APART_OF,
    escalation_updates::FORGET,
    escalation_updates::ASK_APART,
    escalations::SET_MARKER,
    escalations::REMARKED,
    escalations::BEGIN_ANEW,
    escalations::READ_AS,
    atom_files::NEWER,
    atom_files::TEXTS,
    atom_files::LATEST,
    atom_files::OFFER,
    atom_files::TAKEN,
    atom_files::IS_DELETED,
    uses::SHOW,
    uses::DOUBT,
    asked::FORGET,
    asked::FORGET_AHEAD,
    asked::OF_PERSON,
    asked::OF_CONVERSATION,
    asked::IS_COUNTED,
    asked::ASK,
    asked::TAKE_BACK,
    asked::WRITTEN_BY,
    asked::PASSED_ON,
    cases::OPEN_IN,
    cases::ONE,
    cases::NOTES,
    cases::ADD_NOTE,
    cases::SPELLINGS,
    cases::ADD_MESSAGE,
    cases::IS_KNOWN,
    cases::travel::OF_SESSION,
    cases::travel::IS_TAKEN,
    cases::travel::RESTORE,
    cases::travel::RESTORE_AS,
    cases::travel::IS_THERE,
    cases::travel::NOTE_SOURCE,
    presence::OWE,
    presence::OWED,
    presence::SETTLED,
    presence::FORGET_READING,
    presence::READ_BACK,
    presence::IS_KNOWN,
    presence::LAST_TOLD,
    presence::CLAIM_TELLING,
    presence::TOLD,
    presence::UNTOLD,
    presses::TAKE,
    presses::AFTER,
    presses::SHOW,
    presses::DONE,
    proposals::PROPOSE,
    proposals::FORGET,
    proposals::FIND,
    proposals::CONFIRM,
    proposals::EDITED,
    proposals::DROP,
    proposals::CONFIRMATION,
    proposals::SET_CONFIRMATION,
    proposals::CONFIRMED,
    proposals::REOPEN,
    proposals::CARRIED_OUT,
    experiments::DESIGN,
    experiments::FIND_ARM,
    experiments::OTHER_TROUBLE,
    experiments::DRAW_ARM,
    experiments::FIND_ANSWER,
    experiments::VOTE,
    turns::ASKED_ALONG,
    turns::recording::SPENT,
    outgoing::UNSENT_PARTS,
    turns::delivering::PART_SENT,
    turns::delivering::HOW,
    turns::delivering::SET_HOW,
    turns::delivering::OUTSTANDING,
    turns::delivering::EMPTY_PARTS,
    turns::delivering::DELIVERED,
    turns::delivering::EMPTY_QUESTION,
    window::READ_LIVE,
    window::READ_SHORT,
    window::NEXT_POSITION,
    archive::ADD_MESSAGE,
    window::ADD_LIVE,
    window::REMOVE_LIVE,
    window::REPLACE_LIVE,
    window::MARK_SESSION,
    lease::FIND_HOLDER,
    lease::TAKE,
    lease::RELEASE,
    lease::FREE,
    sessions::SUMMARY,
    sessions::FIND_SESSION,
    sessions::LIVE_MESSAGES,
    reset::EMPTY_LIVE,
    reset::FORGET_DROPPED,
    receipt::IS_STORED,
    restore::HAS_MESSAGES,
    restore::OPEN_SESSION,
    restore::ADD_MESSAGE,
    restore::MARK_SESSION,
    restore::HAS_IMAGE,
    restore::ENTER_IMAGES,
    events::ADD,
    events::WAITING,
    events::COUNT,
    events::FORGET,
    events::EXPORTED,
    events::SETTLE,
    receipt::KEEP_TEXT,
    receipts::FIND_TEXT,
    receipt::KEEP,
    receipts::OF_SESSION,
    archive::COUNT_TERMS,
    turns::recording::PIECE,
    changes::FIND,
    changes::FIND_HANDED_ON,
    changes::FIND_REPLY,
    changes::IN_DIRECT,
    intake::SET_MESSAGE,
    changes::SET_EDITED,
    intake::CALL_OFF,
    intake::UNPARK,
    intake::REOPEN,
    changes::STOP,
    changes::SET_STARTED,
    changes::NEXT_REVISION,
    changes::REVISION,
    early::KEEP_EARLY,
    early::KEEP_STOP,
    early::CLEAR_STOP,
    early::FIND_EARLY,
    early::TAKE_EARLY,
    early::CLEAR_EARLY,
    early::KEEP_STOPS_IN,
    early::FORGET_EDITS_IN,
    changes::WAITING_IN,
    again::PLACE,
    again::ASKED,
    again::WROTE_IN,
    again::LEAVE_LIVE,
    receipt::BACKGROUNDS,
    following::NOT_ALONE,
    presses::FORGET_SHOWING,
    presses::TAKE_SHOWING,
    presses::CARRIED_OUT,
    again::AGAIN_OF,
    again::OF_AGAIN,
    erase::QUESTION,
    erase::ATTACHED,
    erase::LAST,
    erase::PIECE_OF,
    erase::ERASE,
    erase::ERASE_LIVE,
    erase::SHORTEN_PIECE,
    erase::MOVE_PIECES,
    erase::FORGET_READING,
    erase::FORGET_EDITED,
    erase::FORGET_PROPOSAL,
    erase::WITH_THREAD,
    erase::MAY_READ,
    images::KEEP,
    images::READ,
    images::SIZE,
    images::FORGET,
    reattached::ATTACHED,
    reattached::SET_ATTACHED,
    receipt::ERASE_TEXT,
    retention::PROLONG,
    retention::ACTIVE_SINCE,
    retention::UNANSWERED,
    retention::FORGET_PARKED,
    retention::FORGET_EDITED,
    retention::FORGET_READINGS,
    retention::FORGET_PARTS,
    retention::FORGET_PROPOSALS,
    retention::FORGET_IMAGES,
    retention::FORGET_COUNTS,
    retention::LAST_MESSAGES,
    retention::LEAVE_CASE,
    retention::KEEP_NOTE,
    retention::FORGET_MESSAGE,
    dump::SESSION,
    dump::MESSAGES,
    dump::LIVE,
];

/// Returns the steps of a statement's plan, without those that SQLite plans for violated foreign keys and skips
/// otherwise.
fn plan(conn: &rusqlite::Connection, statement: &str) -> Vec<String> {
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
    let parameters = vec![rusqlite::types::Null; explain.parameter_count()];
    let steps = explain.query_map(rusqlite::params_from_iter(parameters), |row| row.get("detail")).unwrap();
    steps.map(Result::unwrap).collect()
}

#[tokio::test]
async fn no_statement_of_a_turn_reads_a_table_through() {
    let home = home();
    drop(open(&home));
    let conn = sql(home.path());
    assert!(BY_INDEX.len() <= CACHED_STATEMENTS, "a turn's statements have no room to be kept compiled");
    for statement in BY_INDEX {
        for step in plan(&conn, statement) {
            assert!(!step.contains("SCAN") && !step.contains("TEMP B-TREE"), "{step}\nin {statement}");
        }
    }
}

#[tokio::test]
async fn which_texts_are_stored_is_looked_up_by_their_digests() {
    let home = home();
    drop(open(&home));
    let steps = plan(&sql(home.path()), receipt::STORED);
    assert!(steps.iter().any(|step| step.contains("SEARCH text USING")), "{steps:?}");
    assert!(steps.iter().all(|step| !step.contains("SCAN") || step.contains("json_each")), "{steps:?}");
}

/// It is asked once for every piece that is erased, while nobody else writes.
#[tokio::test]
async fn what_was_said_since_the_receipts_were_read_is_looked_up_by_turns() {
    let home = home();
    drop(open(&home));
    let steps = plan(&sql(home.path()), retention::BODIES_SINCE);
    assert!(steps.iter().any(|step| step.contains("SEARCH r USING")), "{steps:?}");
    assert!(steps.iter().all(|step| !step.contains("SCAN") || step.contains("json_each")), "{steps:?}");
}

#[tokio::test]
async fn a_start_reads_the_open_questions_alone() {
    let home = home();
    drop(open(&home));
    let steps = plan(&sql(home.path()), intake::OPEN_WORK);
    assert!(steps.iter().any(|step| step.contains("SCAN i USING") && step.contains("inbox_open")), "{steps:?}");
    assert!(
        steps.iter().all(|step| !step.contains("SCAN") || step.contains("inbox_open") || step.contains("subquery")),
        "{steps:?}"
    );
}

#[tokio::test]
async fn whether_something_is_being_delivered_is_asked_of_the_open_questions_alone() {
    let home = home();
    drop(open(&home));
    let steps = plan(&sql(home.path()), turns::delivering::DELIVERING_TO);
    assert!(steps.iter().any(|step| step.contains("SCAN i USING") && step.contains("inbox_open")), "{steps:?}");
    assert!(steps.iter().all(|step| !step.contains("SCAN") || step.contains("inbox_open")), "{steps:?}");
}

#[tokio::test]
async fn what_is_to_be_read_back_is_looked_for_among_the_unread_conversations_alone() {
    let home = home();
    drop(open(&home));
    for statement in [presence::UNREAD, presence::LEAVE_OUT] {
        let steps = plan(&sql(home.path()), statement);
        assert!(steps.iter().any(|step| step.contains("session_unread")), "{steps:?}");
        assert!(steps.iter().all(|step| !step.contains("SCAN") || step.contains("session_unread")), "{steps:?}");
    }
}

#[tokio::test]
async fn the_guard_rail_reads_the_turns_of_an_experiment_alone() {
    let home = home();
    drop(open(&home));
    let steps = plan(&sql(home.path()), experiments::GUARDED);
    let is_lookup = |step: &str| step.contains("SEARCH a ") || step.contains("turn_by_experiment");
    assert_eq!(steps.iter().filter(|step| is_lookup(step)).count(), 2, "{steps:?}");
    assert!(steps.iter().all(|step| is_lookup(step) || step.contains("ORDER BY")), "{steps:?}");
}

#[tokio::test]
async fn a_whole_history_is_read_in_one_pass() {
    let home = home();
    drop(open(&home));
    let steps = plan(&sql(home.path()), sessions::ALL_MESSAGES);
    assert!(steps.iter().any(|step| step.contains("message_by_session")), "{steps:?}");
    assert!(steps.iter().all(|step| !step.contains("SCAN")), "{steps:?}");
}
