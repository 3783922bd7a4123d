//! `policy dev`: shows what each saved change of a project affects.

mod page;

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use clap::Args;
use pmk_models::sim::{Sim, SimConfig};
use pmk_policy::SetOverride;
use pmk_system::error::Failure;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

use super::super::{
    arguments::{count, tokens},
    context::{Context, block_on},
    output::print,
    recorded,
};
use crate::{
    config::Config,
    evaluation::{
        authoring::dev::{
            Desk, Tried,
            builder::{BuildError, Builder, BuilderError},
            sessions::{self, Session},
            watch::Watch,
        },
        compare::{questions::Questions, replay::Setup},
    },
    policies::{Loader, Named},
    stderr::Spinner,
    store::Store,
};

/// The most problems of a kind that are told individually.
const MAX_TOLD: usize = 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct Dev {
    /// Project directory
    #[arg(default_value = ".")]
    dir: PathBuf,

    /// Shell command that builds it [default: cargo component or plain cargo, `npm run build` or `build.py`, depending
    /// on the project]
    #[arg(long, value_name = "COMMAND", requires = "component")]
    build: Option<String>,

    /// Component file that `--build` produces, in the project
    #[arg(long, value_name = "FILE", requires = "build")]
    component: Option<PathBuf>,

    /// Directory of recorded conversations, or one file, as for `compare` [default: the home's, otherwise built-in
    /// ones]
    #[arg(long, value_name = "FILE|DIR")]
    histories: Option<PathBuf>,

    /// Questions about them, as for `compare`
    #[arg(long, value_name = "FILE")]
    questions: Option<PathBuf>,

    /// Maximum number of conversations
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = count::<usize>)]
    most: usize,

    /// Model's context window in tokens [default: without `--budget`, from the receipts; without any, the limit is half
    /// of each conversation]
    #[arg(long, value_name = "N", value_parser = tokens, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Hard limit in tokens
    #[arg(long, value_name = "N", value_parser = tokens, allow_negative_numbers = true)]
    budget: Option<u64>,

    /// Set a policy setting
    #[arg(long, value_name = "POLICY.NAME=VALUE")]
    set: Vec<SetOverride>,

    /// Build once, compare with the existing component and exit; exit code 1 if the build or a check fails
    #[arg(long)]
    once: bool,
}

/// A build, and its outcome.
struct Round {
    number: usize,
    took: Duration,
    outcome: Result<Tried, Failed>,
}

/// The build produced nothing to try.
struct Failed {
    failure: Failure,
    /// The compiler output.
    said: String,
}

/// The context in which rounds are reported.
struct Told {
    /// A description of the conversations and where they come from.
    all: String,
    /// The number of conversations.
    count: usize,
    /// Where good builds are written.
    component: PathBuf,
    /// The component that existed before the first build.
    before: Option<PathBuf>,
    /// The component of the last good build is still there, as it was.
    is_kept: bool,
}

impl Dev {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = std::path::absolute(&self.dir)
            .map_err(|error| Failure::new(format!("folder `{}` does not exist: {error}", self.dir.display())))?;
        let builder = match (&self.build, &self.component) {
            (Some(build), Some(component)) => Builder::given(&folder, build, component)?,
            _ => Builder::find(&folder)?,
        };
        let watch = Watch::new(&folder, builder.written());
        let (desk, told) = self.desk(context, &builder)?;
        block_on(async {
            let cannot = |error| Failure::new(format!("cannot listen for signals: {error}"));
            let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
            let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
            tokio::select! {
                done = self.work(context, &builder, watch, desk, told) => done,
                _ = terminate.recv() => self.stopped(),
                _ = interrupt.recv() => self.stopped(),
            }
        })
    }

    /// The outcome if somebody stops it: the only way to end what watches, but no answer about the one build.
    fn stopped(&self) -> Result<(), Failure> {
        match self.once {
            true => Err(Failure::new("it was stopped before the build was tried").hint("run the command again")),
            false => Ok(()),
        }
    }

    /// Sets up what builds are tried on.
    fn desk(&self, context: &Context, builder: &Builder) -> Result<(Desk, Told), Failure> {
        let config = context.config()?;
        let setup = self.setup(&config);
        let questions = self.questions.as_deref().map(Questions::read).transpose()?;
        let (sessions, all) = self.sessions(context, &setup)?;
        for session in &sessions {
            for problem in session.questions(questions.as_ref()).1 {
                context.warn(&format!("`{}`: {problem}", session.name));
            }
        }
        if let Some(questions) = &questions {
            let astray = sessions::astray(&sessions, questions);
            warn(context, &astray, |more| {
                format!("{more} more of this kind; `--most` says how many conversations are replayed")
            });
        }
        let loader = Loader::open(&context.home, Named { set: self.set.clone(), ..Named::default() })?;
        let component = builder.component().to_owned();
        let told = Told { all, count: sessions.len(), component, before: None, is_kept: false };
        Ok((Desk::new(loader, config.policy, sessions, questions), told))
    }

    fn setup(&self, config: &Config) -> Setup {
        let sim = SimConfig::default();
        let window = self.window.unwrap_or(sim.window);
        Setup {
            window,
            budget: self.budget,
            sim: Sim::new(SimConfig { window, delay_ms: 0, ..sim }),
            history_turns: config.history_turns,
            by_receipts: !self.has_limit(),
        }
    }

    fn has_limit(&self) -> bool {
        self.window.is_some() || self.budget.is_some()
    }

    /// Returns the conversations, and a description of them.
    fn sessions(&self, context: &Context, setup: &Setup) -> Result<(Vec<Session>, String), Failure> {
        let sources = match &self.histories {
            Some(folder) => {
                let (found, problems) = recorded::of_folder(folder, self.questions.as_deref())?;
                problems.iter().for_each(|problem| context.warn(&problem.to_string()));
                found
            }
            None if Store::may_be_at(&context.place()?) => recorded::of_home(context.place()?)?,
            None => vec![],
        };
        let (found, problems) = sessions::of(sources, self.most, setup, self.has_limit());
        warn(context, &problems, |more| format!("{more} more of this kind"));
        if found.is_empty() {
            if let Some(folder) = &self.histories {
                return Err(Failure::new(format!("no conversation of `{}` can be replayed", folder.display()))
                    .hint("each file is a JSON list of messages, an object with `messages`, or one message per line"));
            }
            let found = sessions::built_in(setup, self.has_limit());
            let all = format!("{} conversations that are built in", found.len());
            return Ok((found, all));
        }
        let from = self.histories.as_ref().unwrap_or(&context.home);
        let all = match found.len() {
            1 => format!("1 conversation of `{}`", from.display()),
            count => format!("{count} conversations of `{}`", from.display()),
        };
        Ok((found, all))
    }

    /// Runs a round, and another one after every save.
    async fn work(
        &self,
        context: &Context,
        builder: &Builder,
        mut watch: Watch,
        desk: Desk,
        mut told: Told,
    ) -> Result<(), Failure> {
        let mut desk = Some(desk);
        if builder.component().exists() {
            told.before = Some(builder.component().to_owned());
            let component = builder.component().to_owned();
            aside(&mut desk, move |desk| desk.begin_with(&component)).await?;
        }
        let mut last_good = stamp(builder.component());
        for number in 1.. {
            let seen = watch.look();
            let round = round(number, builder, &mut desk).await?;
            told.is_kept = last_good.is_some() && last_good == stamp(builder.component());
            print(&if context.json {
                page::document(&round, &told)
            } else {
                page::text(&round, &told, context.language)
            })?;
            if self.once {
                return round.verdict();
            }
            if round.verdict().is_ok() {
                last_good = stamp(builder.component());
            }
            if number == 1 {
                let (folder, component) = (self.dir.display(), shown(builder.component()));
                context.notice(
                    &format!("watching `{folder}`, press Ctrl-C to stop; good builds are written to `{component}`"),
                    None,
                );
            }
            watch.other_than(&seen).await;
        }
        Ok(())
    }
}

/// Warns of the first of these problems, and says how many more there are.
fn warn(context: &Context, problems: &[String], more: impl FnOnce(usize) -> String) {
    problems.iter().take(MAX_TOLD).for_each(|problem| context.warn(problem));
    if let Some(count) = problems.len().checked_sub(MAX_TOLD).filter(|&count| count > 0) {
        context.warn(&more(count));
    }
}

/// Returns what changes when a file is written; `None` where there is none.
fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(file).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Builds the project, and tries the result. A failure leaves the previous build as it is.
async fn round(number: usize, builder: &Builder, desk: &mut Option<Desk>) -> Result<Round, Failure> {
    let begun = Instant::now();
    let waiting = Spinner::now(&format!("building with {}", builder.what()));
    let built = builder.build(&CancellationToken::new()).await;
    waiting.tell("comparing");
    let outcome = match built {
        Ok(file) => {
            let load = file.clone();
            let tried = aside(desk, move |desk| desk.try_out(&load)).await?;
            match tried {
                Ok(tried) if tried.check.failed() == 0 => builder.keep(&file).map(|()| tried).map_err(Failed::from),
                Ok(tried) => Ok(tried),
                Err(failure) => Err(Failed { failure, said: String::new() }),
            }
        }
        Err(error) => Err(error.into()),
    };
    drop(waiting);
    Ok(Round { number, took: begun.elapsed(), outcome })
}

/// Does slow work on a separate thread, so that an interrupt need not wait for it.
async fn aside<T: Send + 'static>(
    desk: &mut Option<Desk>,
    work: impl FnOnce(&mut Desk) -> T + Send + 'static,
) -> Result<T, Failure> {
    let bug = || Failure::new("trying out the policy failed because of a bug in this program");
    let mut taken = desk.take().ok_or_else(bug)?;
    let (done, came) = oneshot::channel();
    thread::spawn(move || {
        let result = work(&mut taken);
        let _ = done.send((taken, result));
    });
    let (taken, result) = came.await.map_err(|_| bug())?;
    *desk = Some(taken);
    Ok(result)
}

impl Round {
    /// Returns the result for the exit code.
    fn verdict(self) -> Result<(), Failure> {
        match self.outcome {
            Err(failed) => Err(failed.failure),
            Ok(tried) => match tried.check.failed() {
                0 => Ok(()),
                failed => Err(Failure::new(format!("the policy gave {failed} bad answers"))
                    .hint("fix the first one of each kind; `pmk-host policy check` asks more questions")),
            },
        }
    }
}

impl From<BuildError> for Failed {
    fn from(error: BuildError) -> Failed {
        let failure = Failure::new(&error);
        match error {
            BuildError::Failed { said, .. } => Failed { failure: failure.hint("see its output above"), said },
            BuildError::Nothing { .. } => {
                let hint = "specify the file that the build creates with `--build COMMAND --component FILE`";
                Failed { failure: failure.hint(hint), said: String::new() }
            }
            BuildError::NoComponent { hint: Some(hint), .. } => {
                Failed { failure: failure.hint(hint), said: String::new() }
            }
            _ => Failed { failure, said: String::new() },
        }
    }
}

impl From<BuilderError> for Failure {
    fn from(error: BuilderError) -> Failure {
        let failure = Failure::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The path as the author would write it.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}
