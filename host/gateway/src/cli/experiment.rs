//! `experiment start|status|stop|promote`: policies compared on live traffic.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use pmk_policy::Stack;
use pmk_system::error::{Failure, OrHint};
use pmk_system::{files, home};
use serde_json::{Value, json};

use super::{
    change::record,
    context::{Context, block_on},
    layers::sent_arms,
    output::print_json,
};
use crate::{
    config::{ArmConfig, ArmPolicy, Config, ExperimentConfig, Object, PolicyConfig},
    control::{self, Reply, Request, look},
    embedded,
    operator::admin,
    policies::{
        Loader, Named, Origin, Overridden, Source, StartLook, StartRefusal,
        experiment::{
            arms::{Arms, Load, Sent},
            live::has_run,
            shared_arms::Shared,
        },
        identities, names, to_send,
    },
    store::{Place, SentArm, SentLayer, Store},
};

mod status;
mod suspensions;

/// How long a running gateway may take to follow gateway.json.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(5);

/// How long it may take to look whether it would start with other policies, which it has loaded as an arm.
const TRIED_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Subcommand)]
pub(super) enum ExperimentCommand {
    /// Start the experiment in gateway.json or in a file
    Start(Start),
    /// Show results by arm and which differences are established
    Status(status::Status),
    /// Stop the experiment; all conversations use the current policies
    Stop,
    /// End the experiment and use one of its arms for everyone
    Promote(Promote),
}

#[derive(Debug, Args)]
pub(super) struct Start {
    /// JSON file with name, control and arms, saved as `experiment` in gateway.json; relative policy paths are resolved
    /// from the home
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Promote {
    /// Arm, as printed by `experiment status`
    arm: String,
}

/// A promoted arm.
struct Promoted {
    config: ExperimentConfig,
    /// Whether it serves by now.
    serves: bool,
    /// Whether it does so after a restart with the same options, or on several hosts after all have ended, if a running
    /// gateway could tell.
    survives: Option<bool>,
    /// The settings that will not be the arm's then, if a running gateway could tell.
    overridden: Option<Vec<Overridden>>,
}

impl ExperimentCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            ExperimentCommand::Start(start) => start.run(context),
            ExperimentCommand::Status(status) => status.run(context),
            ExperimentCommand::Stop => stop(context),
            ExperimentCommand::Promote(promote) => promote.run(context),
        }
    }
}

impl Start {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let started = self.start(context);
        let (config, arms) = record(context, "experiment.start", &[file.as_deref().unwrap_or_default()], started)?;
        let start = config.start.unwrap_or_default();
        warn_if_futile(context, &config);
        if context.json {
            let arms: Vec<Value> = config.arms.iter().map(|arm| document(arm, &arms)).collect();
            return print_json(&json!({
                "experiment": config.name, "start": start.to_string(), "control": config.control, "arms": arms,
            }));
        }
        let arm = |arm: &ArmConfig| format!("`{}` ({})", arm.name, context.translated(&role(arm, &config)));
        let (name, arms) = (&config.name, config.arms.iter().map(arm).collect::<Vec<_>>().join(", "));
        context.say(&match start > Timestamp::now() {
            true => format!("experiment `{name}` starts at {start}: {arms}"),
            false if look(&context.home).is_ok_and(|gateway| gateway.pid.is_none()) => {
                let run = home::command(&context.home, "run");
                format!("experiment `{name}` begins with the next `{run}`: no gateway is running here: {arms}")
            }
            false => format!("experiment `{name}` is running; a running gateway follows within seconds: {arms}"),
        });
        Ok(())
    }

    /// Starts an experiment after all its arms have been loaded.
    fn start(&self, context: &Context) -> Result<(ExperimentConfig, Arms), Failure> {
        let (config, _) = Config::load_for_command(&context.home)?;
        let written = self.file.as_deref().map(read).transpose()?;
        let wanted = match &written {
            Some(written) => Some(admin::parse_experiment(written)?),
            None => config.experiment.clone(),
        };
        let wanted = wanted.ok_or(admin::ChangeError::NoExperiment)?;
        // The name of the one that is on may be known, too, but it is not over.
        if let Some(on) = config.experiment.filter(|there| there.start.is_some()) {
            return Err(admin::ChangeError::ExperimentOn(on.name).into());
        }
        refuse_known(context, &wanted.name)?;
        let arms = load(context, &config.policy, &wanted)?;
        let started = admin::start_experiment(&context.home, written, &format!("{:.0}", Timestamp::now()))?;
        Ok((started, arms))
    }
}

/// Why the arm does not serve in time, if a gateway is running.
enum Lag {
    /// It uses these policies, or the arm's with other settings. A choice of `policy use` stays in effect if gateway.json
    /// does not change. An experiment that ended at once may never have started in the gateway, for which the promotion
    /// is then a change of `policy` like any other, and those wait for a restart.
    Others(String),
    /// Nobody knows what it uses. If it had begun the experiment, it follows once it goes on.
    Silent,
}

impl Lag {
    /// What to tell the operator who has promoted an arm with these files.
    fn failure(&self, context: &Context, files: &[PathBuf]) -> Failure {
        let applying = applying(context, files);
        match self {
            Lag::Others(others) => Failure::new(others).hint(format!(
                "apply it now with `{applying}`, which takes its settings from gateway.json, or restart the gateway"
            )),
            Lag::Silent => {
                let status = home::command(&context.home, "status");
                Failure::new("the running gateway does not answer").hint(format!(
                    "once it answers again, `{status}` shows what it uses; if that is not the arm's policies, apply them \
                     with `{applying}` or restart the gateway"
                ))
            }
        }
    }
}

/// Waits until the running gateway, if there is one, uses these policies with these settings. Returns why it does not.
fn lag(context: &Context, promoted: &Stack) -> Option<Lag> {
    let (layers, settings) = (identities(promoted), promoted.changed_settings());
    let begun = Instant::now();
    loop {
        let gateway = look(&context.home).ok()?;
        gateway.pid?;
        let lag = match gateway.report {
            None => Lag::Silent,
            Some(report) => {
                let (serving, is_set_alike) =
                    (report.policies, report.settings.is_none_or(|theirs| theirs == settings));
                match serving == layers {
                    _ if serving.is_empty() => return None,
                    true if is_set_alike => return None,
                    true => {
                        Lag::Others(format!("the running gateway still uses `{}` with other settings", names(&serving)))
                    }
                    false => Lag::Others(format!("the running gateway still uses `{}`", names(&serving))),
                }
            }
        };
        if begun.elapsed() > FOLLOWS_WITHIN {
            return Some(lag);
        }
        std::thread::sleep(FOLLOWS_WITHIN / 50);
    }
}

/// Loads the arms as a running gateway would.
fn load(context: &Context, base: &PolicyConfig, experiment: &ExperimentConfig) -> Result<Arms, Failure> {
    let loader = Loader::open(&context.home, Named::default())?;
    let load: Load = Arc::new(move |policy, origin| loader.arm(policy, origin));
    let experiment = experiment.clone().within(&context.home);
    // A database that cannot be asked is reported where it is used.
    let sent = sent_arms(Some(&experiment), context.place()?).unwrap_or_default();
    Arms::load(&experiment, base, &load, &sent)
}

/// Loads the arms of an experiment in a file from the files here, the control first. Those without policies are what a
/// gateway would start with.
pub(super) fn arms(context: &Context, base: &PolicyConfig, file: &Path) -> Result<Vec<(String, Stack)>, Failure> {
    let experiment = admin::parse_experiment(&read(file)?)?.within(&context.home);
    let loader = Loader::open(&context.home, Named::default())?;
    let of_arm = loader.clone();
    let load: Load = Arc::new(move |policy, origin| of_arm.arm(policy, origin));
    let mut arms = Vec::new();
    for arm in Arms::load(&experiment, base, &load, &Sent::default())?.iter() {
        let stack = match &arm.policies {
            Some(policies) => policies.stack().without_breakers(),
            None => loader.start(base)?,
        };
        arms.push((arm.name.to_string(), stack));
    }
    arms.sort_by_key(|(name, _)| *name != experiment.control);
    Ok(arms)
}

/// Refuses the name of an experiment that has already run: the results under a name must stay its own.
fn refuse_known(context: &Context, name: &str) -> Result<(), Failure> {
    let Some(store) = Store::open_if_any(context.place()?)? else { return Ok(()) };
    let is_known = block_on(async { Ok(store.is_known_experiment(name).await?) })?;
    if is_known { Err(has_run(name)) } else { Ok(()) }
}

/// Warns about an experiment from which nothing can be learnt.
fn warn_if_futile(context: &Context, experiment: &ExperimentConfig) {
    if let Some(why) = experiment.futile() {
        context.warn_of("nothing can be learnt from this experiment", &why);
    }
}

fn read(file: &Path) -> Result<Object, Failure> {
    let text = files::read_text(file)
        .map_err(|error| format!("cannot read `{}`: {error}", file.display()))
        .or_hint("specify a JSON file with `name`, `control` and `arms`")?;
    serde_json::from_str(&text)
        .map_err(|error| format!("`{}`: {error}", file.display()))
        .or_hint("it has the format of `experiment` in gateway.json: an object with `name`, `control` and `arms`")
}

fn role(arm: &ArmConfig, config: &ExperimentConfig) -> String {
    match (arm.shadow, arm.name == config.control) {
        (true, _) => "shadow".into(),
        (false, true) => format!("control, weight {}", arm.share()),
        (false, false) => format!("weight {}", arm.share()),
    }
}

fn document(arm: &ArmConfig, arms: &Arms) -> Value {
    let top = arms.get(&arm.name).and_then(|arm| arm.policies.as_ref()).map(|policies| {
        let top = policies.top();
        json!({"name": top.name, "sha256": top.sha256})
    });
    json!({"arm": arm.name, "weight": arm.share(), "shadow": arm.shadow, "policy": top})
}

/// The command that makes a running gateway use these policies with the settings of gateway.json.
fn applying(context: &Context, files: &[PathBuf]) -> String {
    let named: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let named = if named.is_empty() { vec![embedded::STANDARD_NAME.to_owned()] } else { named };
    let words = ["policy", "use"].into_iter().chain(named.iter().map(String::as_str));
    // Only a null byte cannot be quoted, and no path has one.
    home::command(&context.home, &shlex::try_join(words).unwrap_or_default())
}

fn stop(context: &Context) -> Result<(), Failure> {
    let stopped = admin::stop_experiment(&context.home).map_err(Failure::from);
    let config = record(context, "experiment.stop", &[], stopped)?;
    if context.json {
        return print_json(&json!({"experiment": config.name, "stopped": true}));
    }
    context.say(&format!("experiment `{}` is over; the current policies decide in every conversation", config.name));
    Ok(())
}

impl Promote {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let promoted = self.promote(context);
        let Promoted { config, serves, survives, overridden } =
            record(context, "experiment.promote", &[&self.arm], promoted)?;
        if context.json {
            return print_json(&json!({
                "experiment": config.name, "promoted": self.arm, "serves": serves, "survives_restart": survives,
                "overridden_after_restart": overridden,
            }));
        }
        if !serves {
            context.say(&format!(
                "experiment `{}` is over; gateway.json names the policies of `{}`",
                config.name, self.arm
            ));
            return Ok(());
        }
        context.say(&format!(
            "experiment `{}` is over; `{}` decides in every conversation from now on",
            config.name, self.arm
        ));
        Ok(())
    }

    /// Refuses to promote an arm if its files here differ from what another host has sent and conversations have used.
    fn refuse_another(&self, place: &Place, experiment: &ExperimentConfig, loaded: &Stack) -> Result<(), Failure> {
        if place.database.is_none() {
            return Ok(());
        }
        let here: Vec<SentLayer> = to_send(loaded).into_iter().map(|(layer, _)| layer).collect();
        let Some(store) = Store::open_if_any(place.clone())? else { return Ok(()) };
        let shared = Shared { store: &store, home: &place.home, config: experiment };
        let sent = block_on(async { Ok(shared.sent().await?) })?;
        match sent.into_iter().find(|sent| sent.name == self.arm && sent.layers != here) {
            None => Ok(()),
            Some(SentArm { host, .. }) => Err(Failure::new(format!(
                "the files of arm `{}` here differ from those that `{host}` sent and that decided in conversations",
                self.arm
            ))
            .hint("promote it there, or copy its files from there")),
        }
    }

    /// Asks the running gateway, if there is one, what would become of it if it were started again with the same options
    /// and this arm in gateway.json. `None` if nobody can tell.
    fn look_at_start(&self, context: &Context, policy: &ArmPolicy) -> Result<Option<StartLook>, Failure> {
        let request = Request::PolicyStart { files: policy.files.clone(), settings: policy.settings.clone() };
        // An older gateway does not know the question.
        let Ok(Reply::Start(look)) = control::ask_within(&context.home, &request, TRIED_WITHIN) else {
            return Ok(None);
        };
        let Some(StartRefusal { why, hint, by_options }) = look.refused else { return Ok(Some(look)) };
        let refused = Failure::new(format!(
            "the gateway, started again with the same options, would refuse `{}`: {why}",
            self.arm
        ));
        Err(match hint {
            _ if by_options => refused.hint("restart it without that option first; gateway.json was not changed"),
            Some(hint) => refused.hint(hint),
            None => refused,
        })
    }

    /// Returns what speaks against the arm: that the guard rail had stopped it, or that it has never decided.
    fn doubt(&self, place: &Place, experiment: &ExperimentConfig) -> Result<Option<String>, Failure> {
        let name = &experiment.name;
        let (mut stopped, conversations) = match Store::open_if_any(place.clone())? {
            Some(store) => block_on(async {
                Ok((store.stop_reasons(name).await?, store.guarded_conversations(name, i64::MIN).await?))
            })?,
            None => Default::default(),
        };
        let has_decided = conversations.iter().any(|it| it.arm == self.arm && it.turns > 0);
        Ok(match stopped.remove(&self.arm) {
            Some(reason) => Some(format!("the guard rail had stopped `{}`: {reason}", self.arm)),
            None if has_decided => None,
            None => Some(format!("`{}` has decided in no conversation of `{name}`", self.arm)),
        })
    }

    /// Ends the experiment. The arm must load, or the next start would fail. Nothing fails once gateway.json has been
    /// changed.
    fn promote(&self, context: &Context) -> Result<Promoted, Failure> {
        let (now, _) = Config::load_for_command(&context.home)?;
        let wanted = now.experiment.map(|experiment| experiment.within(&context.home));
        let policy = wanted.as_ref().and_then(|experiment| experiment.arm(&self.arm)?.policy.as_ref());
        let place = context.place()?;
        let (mut promoted, mut start) = (None, None);
        if let (Some(policy), Some(experiment)) = (policy, &wanted) {
            let loaded =
                Loader::open(&context.home, Named::default())?.arm(&policy.over(&now.policy), Origin::Files)?;
            self.refuse_another(&place, experiment, &loaded)?;
            start = self.look_at_start(context, policy)?;
            promoted = Some((loaded, policy));
        }
        let doubt = wanted.as_ref().map(|experiment| self.doubt(&place, experiment)).transpose()?.flatten();
        let config = admin::promote_arm(&context.home, &self.arm)?;
        let unset = policy.into_iter().flat_map(|policy| {
            now.policy
                .settings
                .keys()
                .filter(|name| !policy.settings.contains_key(*name))
                .map(|name| format!("`{name}`"))
        });
        let unset: Vec<String> = unset.collect();
        if !unset.is_empty() {
            context.warn(&format!(
                "gateway.json no longer has settings for {}: `{}` decided without them",
                unset.join(", "),
                self.arm
            ));
        }
        if let Some(doubt) = doubt {
            context.warn(&doubt);
        }
        let lag = promoted.and_then(|(loaded, policy)| Some((lag(context, &loaded)?, policy)));
        if let Some((lag, policy)) = &lag {
            context.warn_of("it does not decide in every conversation yet", &lag.failure(context, &policy.files));
        }
        let survives = start.as_ref().map(|start| start.by != Source::CommandLine);
        // With other policies, their settings are the lesser matter.
        let overridden = start.map(|start| match start.by {
            Source::CommandLine => vec![],
            Source::Config | Source::Default => start.overridden,
        });
        // A host that is started again takes over what decides on the others, or did before a crash.
        let is_shared = place.database.is_some();
        for setting in overridden.iter().flatten() {
            let hint = Failure::new(setting.to_string()).hint("start it without that next time");
            let what = match is_shared {
                true => "a setting of the arm does not survive the end of all hosts",
                false => "a setting of the arm does not survive a restart",
            };
            context.warn_of(what, &hint);
        }
        if survives == Some(false) {
            let why = "the gateway was started with `--policy`, which takes precedence over gateway.json";
            let hint = Failure::new(why).hint("start it without `--policy` next time");
            let what = match is_shared {
                true => "it does not decide once all hosts have ended",
                false => "it does not decide after a restart",
            };
            context.warn_of(what, &hint);
        }
        Ok(Promoted { config, serves: lag.is_none(), survives, overridden })
    }
}
