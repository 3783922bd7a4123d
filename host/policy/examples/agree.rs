//! Compares the decisions of two components on every fixture under `tests/fixtures`, generated histories, several
//! budgets, caps and recovery. Where they differ, prints the first difference and exits with code 1.
//!
//! `cargo run -p pmk-policy --example agree -- plugins/strict.wasm rebuilt/strict.wasm`

use std::{error::Error, path::Path, process::ExitCode, sync::Arc};

use pmk_core::{Applied, History, Origin, Transcript, history, testing};
use pmk_policy::{
    Compiler, DecidedBy, IncomingInput, Layer, OverflowInput, Phase, Policy, PruneInput, Rung, Runtime, RuntimeConfig,
    Settings, Stack,
};
use pmk_search::MemoryArchive;

const LIMITS: [u64; 5] = [100_000, 20_000, 4_000, 800, 100];
const HISTORIES: u64 = 200;

/// A conversation, and its name in errors.
type Named = (String, Arc<Transcript>);

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [one, other] = files.as_slice() else {
        eprintln!("error: two components are compared\n  hint: agree ONE.wasm OTHER.wasm");
        return ExitCode::from(2);
    };
    match compare(one, other) {
        Ok(decisions) => {
            println!("{one} and {other} agree on {decisions} decisions");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {one} and {other}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(one: &str, other: &str) -> Result<usize, Box<dyn Error>> {
    let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here))?;
    let (one, other) = (stack(&runtime, one)?, stack(&runtime, other)?);
    let mut decisions = 0;
    for (name, transcript) in transcripts()? {
        for limit in LIMITS {
            let input = PruneInput { limit, window: limit * 2, phase: Phase::First, seed_may_go: false };
            let (a, b) = (one.prune(&transcript, input), other.prune(&transcript, input));
            same(
                &name,
                &(shape(&a.applied), by_policy(&a.decided_by)),
                &(shape(&b.applied), by_policy(&b.decided_by)),
            )?;
            let (a, b) = (one.summarize(&transcript, 1_000), other.summarize(&transcript, 1_000));
            same(&name, &a.text, &b.text)?;
            decisions += 2;
        }
        for kind in [Origin::Seed, Origin::MraResult, Origin::ToolResult, Origin::Attachment] {
            let text: String = transcript.entries().iter().map(|entry| entry.message.plain_text()).collect();
            let text: Arc<str> = text.into();
            let incoming = || IncomingInput { kind, name: "erp".into(), text: Arc::clone(&text), limit: 20_000 };
            same(&name, &one.cap(incoming()).verdict, &other.cap(incoming()).verdict)?;
            decisions += 1;
        }
    }
    for tried in [vec![], vec![Rung::Trim], vec![Rung::Trim, Rung::Compact]] {
        let overflow = || OverflowInput {
            phase: Phase::Synthesise,
            tried: tried.clone(),
            available: vec![Rung::Trim, Rung::Compact, Rung::Rotate, Rung::GiveUp],
            observed_tokens: Some(213_462),
            allowed_tokens: None,
        };
        same("recovery", &one.recover(overflow()).rung, &other.recover(overflow()).rung)?;
        decisions += 1;
    }
    Ok(decisions)
}

fn stack(runtime: &Runtime, file: &str) -> Result<Stack, Box<dyn Error>> {
    let policy = Policy::load(runtime, file)?;
    let settings = Settings::defaults(policy.description());
    Ok(Stack::new([], Layer { policy: Arc::new(policy), settings }))
}

fn transcripts() -> Result<Vec<Named>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let repaired = history::repair(History::parse(&std::fs::read_to_string(&path)?)?.messages);
        let transcript = Transcript::of_messages(repaired.messages.into_iter().map(|(_, message)| message));
        found.push((path.display().to_string(), searchable(transcript)));
    }
    assert!(!found.is_empty(), "there are fixtures");
    found.extend((0..HISTORIES).map(|seed| {
        (format!("generated history {seed}"), searchable(testing::random_transcript(seed, 1 + seed as usize % 40)))
    }));
    Ok(found)
}

/// The conversation with an archive of all of its messages.
fn searchable(transcript: Transcript) -> Arc<Transcript> {
    let archive = MemoryArchive::of(&transcript.entries()[..transcript.current()]);
    Arc::new(transcript.with_archive(Arc::new(archive)))
}

/// Everything in a request that the model would see.
fn shape(applied: &Applied) -> impl PartialEq + std::fmt::Debug + use<> {
    let replaced: Vec<_> = applied.replaced.iter().map(|replaced| (replaced.index, replaced.message.clone())).collect();
    let marker = applied.marker.as_ref().map(|(marker, before)| (marker.text(), *before));
    (applied.kept.clone(), replaced, marker, applied.recall.clone(), applied.tokens_after, applied.compaction.clone())
}

fn by_policy(decided_by: &DecidedBy) -> bool {
    matches!(decided_by, DecidedBy::Policy(_))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("they differ on {what}:\n{one:?}\n{other:?}")) }
}
