//! `run`: the gateway itself.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{Args, ValueEnum};
use pmk_knowledge::{Library, find_workspace};
use pmk_models::{self as model, Environment, Model, ModelSpec, Provider};
use pmk_system::{
    child::supervisor,
    clock::Clock,
    error::{Failure, OrHint},
    home::{self, HomeLock},
};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{
    arguments::{tokens as count, variable},
    context::Context,
    layers::LayerArguments,
    logging,
};
use crate::{
    calibration::Calibration,
    config::Config,
    front::{
        Front, FrontError,
        console::{Chat, Lines},
        slack::{Slack, SlackConfig},
    },
    gateway::Gateway,
    ledger::Ledger,
    policies::Swapper,
    presence::{
        Presence,
        manager::Manager,
        probes,
        state::{Phase, State},
        vitals::Vitals,
    },
    services::{Parts, Services, SharedLibrary},
    store::Store,
};

mod ending;
mod parts;
mod swapping;
mod tokens;

use ending::{lost, stop_on_signals, while_present};
use tokens::{Token, Tokens, half};

/// The model of a configuration that names none (specification 000).
const DEFAULT_MODEL: &str = "claude-cli";
/// The model where there is no configuration either.
const MODEL_WITHOUT_CONFIG: &str = "sim";

/// The variable that keeps a gateway from writing to Slack.
const DRY_RUN: &str = "PMK_DRY_RUN";

#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    layers: LayerArguments,

    /// Where people talk [default: slack with tokens, console without]
    #[arg(long)]
    front: Option<FrontChoice>,

    /// What answers: claude-cli[:NAME], anthropic-api[:NAME], openai[:NAME], sim
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// The model's context window in tokens, where it is not the provider's
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    window: Option<u64>,

    /// The base of Slack's Web API; any host may be named here, the tokens are sent there
    #[arg(long, value_name = "URL")]
    slack_api_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FrontChoice {
    Slack,
    Console,
}

/// What is needed to listen.
enum Connection {
    Slack {
        app: Token,
        bot: Token,
    },
    /// A person at a terminal.
    Chat,
    /// JSON lines.
    Lines,
}

/// What was chosen for the operator; said once nothing can go wrong any more.
struct Note {
    what: String,
    hint: String,
}

impl Connection {
    /// The same with its tokens got.
    fn with_tokens(self) -> Result<Connection, Failure> {
        let known = |token: Token| Ok::<_, Failure>(Token::Known(token.resolve()?));
        Ok(match self {
            Connection::Slack { app, bot } => Connection::Slack { app: known(app)?, bot: known(bot)? },
            other => other,
        })
    }
}

impl Run {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let (mut config, warnings) = Config::load(&context.home)?;
        let terminal = std::io::stdin().is_terminal() && !context.json;
        let mut notes = Vec::new();
        if is_dry_run()? {
            notes.push(Note {
                what: format!("dry run, because {DRY_RUN} is set: nothing that writes reaches Slack"),
                hint:
                    "the ledger goes to `dryrun-events-YYYY-MM.log`; what is answered counts as answered in this home"
                        .into(),
            });
        }
        let connection = self.choose_front(&Tokens::of(&config.slack), terminal, &mut notes)?;
        logging::start(matches!(connection, Connection::Chat), context.json);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let configured = variable("PMK_MRA_WORKSPACE").map(PathBuf::from).or(config.mra_workspace);
        config.mra_workspace = find_workspace(configured, &std::env::current_dir().unwrap_or_default());
        let lock = HomeLock::take(&context.home)?;
        let mut state = State::of_this_process();
        state.write(&context.home);
        // A command may take its time, or ask somebody: by now others see that this home is taken, and can stop it.
        supervisor::enable();
        let connection = connection.with_tokens()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let finished = runtime.block_on(self.serve(context, &lock, &mut state, config, connection, notes));
        // A terminal or a stream that never ends has a reader that cannot be woken.
        runtime.shutdown_timeout(Duration::from_millis(100));
        finished
    }

    async fn serve(
        self,
        context: &Context,
        lock: &HomeLock,
        state: &mut State,
        config: Config,
        connection: Connection,
        mut notes: Vec<Note>,
    ) -> Result<(), Failure> {
        let vitals = Vitals::starting(&context.home);
        let manager = Arc::new(Manager::of_environment(Arc::clone(&vitals)));
        let _probes = probes::start(config.health.listen, &vitals).await?;
        let loader = self.layers.loader(&context.home)?;
        let stack = loader.start(&config.policy)?;
        let model = self.open_model(&context.home, &config, &mut notes)?;
        let prompts = parts::prompts(&context.home).speaking(config.language);
        parts::check_window(&*model, &prompts, &config)?;
        let store = Store::open(&context.home)?;
        store.void_leases(lock).await?;
        let (stop, asked) = (CancellationToken::new(), CancellationToken::new());
        stop_on_signals(&stop, &asked)?;
        for Note { what, hint } in notes {
            context.notice(&what, Some(&hint));
        }
        let at_a_terminal = matches!(connection, Connection::Chat);
        let (front, lines) = self.open_front(&config, connection).await?;
        let arms = loader.clone();
        let learnt = store.calibration(model.provider(), model.name()).await?;
        let takes_tools = store.takes_tools(model.provider(), model.name()).await?;
        let library =
            Library::open(&context.home).or_hint("is `knowledge` in the home a folder that you may write?")?;
        let ledger = open_ledger(&context.home, &store)?;
        let parts = Parts {
            home: &context.home,
            clock: Clock::system(),
            store,
            stack,
            model,
            front,
            ledger,
            library: SharedLibrary::new(library),
            calibration: Calibration::new(learnt.fit, learnt.bounds),
            takes_tools,
            prompts,
            mra: parts::mra(&config),
            seeder: parts::seeder(&config),
            load: Arc::new(move |policy| arms.arm(policy)),
            config,
        };
        let policies = parts.config.policy.clone();
        let services = Services::new(parts, stop.clone());
        let gateway = Gateway::new(&services);
        let swapper = Swapper::new(&context.home, swapping::ports(&services), loader, &policies);
        let mut swaps = swapping::start(lock, swapper, &services, gateway.dispatcher(), at_a_terminal)?;
        // Nothing of the start can fail from here on.
        let presence = Presence::begin(&context.home, ending::presence(&services, &gateway, &vitals, &manager)).await?;
        state.phase = Phase::Ready;
        state.write(&context.home);
        vitals.set_ready(swapping::report(&services));
        manager.ready();
        let finished = tokio::select! {
            finished = while_present(&gateway, &presence, &asked) => finished,
            // Nothing that runs now could be stored, so nothing is waited for.
            how = services.store.lost() => Err(lost(&services.ledger, &stop, how)),
        };
        // They hold the ledger, which writes its last events when it goes.
        swaps.shutdown().await;
        drop((presence, gateway, services));
        match lines.as_ref().and_then(|lines| lines.failure()) {
            Some(what) => Err(Failure::new(format!("cannot write to standard output: {what}"))
                .hint("what was accepted is stored, and answered at the next start")),
            None => finished,
        }
    }

    /// Slack where it was asked for or its tokens are there, else the console.
    fn choose_front(&self, tokens: &Tokens, terminal: bool, notes: &mut Vec<Note>) -> Result<Connection, Failure> {
        let console = if terminal { Connection::Chat } else { Connection::Lines };
        let missing = match (&tokens.app, &tokens.bot) {
            _ if self.front == Some(FrontChoice::Console) => None,
            (Some(app), Some(bot)) => {
                return Ok(Connection::Slack { app: app.clone(), bot: bot.clone() });
            }
            // Whoever has set one of them means Slack.
            (None, Some(_)) => return Err(half("the Slack app token (xapp-…)", "PMK_SLACK_APP_TOKEN", "appToken")),
            (Some(_), None) => return Err(half("the Slack bot token (xoxb-…)", "PMK_SLACK_BOT_TOKEN", "botToken")),
            (None, None) => Some((
                "there are no Slack tokens",
                "set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or `slack` in gateway.json",
            )),
        };
        match missing {
            Some((what, hint)) if self.front == Some(FrontChoice::Slack) || self.slack_api_url.is_some() => {
                Err(Failure::new(format!("cannot connect Slack: {what}")).hint(hint))
            }
            None if self.slack_api_url.is_some() => Err(Failure::new("the console has no use for `--slack-api-url`")
                .hint("leave it out, or say `--front slack`")),
            Some((what, hint)) => {
                notes.push(Note {
                    what: format!("front: console, because {what}"),
                    hint: format!("{hint}, to connect Slack"),
                });
                Ok(console)
            }
            None => Ok(console),
        }
    }

    fn open_model(&self, home: &Path, config: &Config, notes: &mut Vec<Note>) -> Result<Arc<dyn Model>, Failure> {
        let mut environment = Environment::of_process(home);
        environment.idle_timeout = Some(Duration::from_secs_f64(config.limits.model_idle_seconds));
        environment.call_timeout = Some(Duration::from_secs_f64(config.limits.model_total_seconds));
        let mut open = |name: &str| -> Result<Arc<dyn Model>, Failure> {
            let spec = name.parse::<ModelSpec>()?.with_window(self.window);
            if let (Provider::AnthropicApi, None, Some(key)) =
                (spec.provider, &environment.anthropic_api_key, &config.api_key)
            {
                environment.anthropic_api_key = Some(key.resolve()?);
            }
            Ok(model::open(&spec, &environment)?)
        };
        match self.model.as_deref().or(config.model.as_deref()) {
            Some(named) => open(named),
            None if config.exists && (config.is_set_up() || Tokens::of(&config.slack).are_any()) => open(DEFAULT_MODEL)
                .map_err(|error| {
                    let error = error.message();
                    Failure::new(format!("gateway.json names no `model`, and the default does not do: {error}"))
                        .hint("add `\"model\": \"anthropic-api\"` to gateway.json, or say `--model`")
                }),
            None => {
                notes.push(Note {
                    what: "model: sim, a stand-in that quotes the conversation, because no model is named".into(),
                    hint: "`--model anthropic-api` with ANTHROPIC_API_KEY set asks a real one".into(),
                });
                open(MODEL_WITHOUT_CONFIG)
            }
        }
    }

    /// Where people talk, and the lines of a program where that is one.
    async fn open_front(
        &self,
        config: &Config,
        connection: Connection,
    ) -> Result<(Arc<dyn Front>, Option<Arc<Lines>>), Failure> {
        Ok(match connection {
            Connection::Slack { app, bot } => {
                (Arc::new(self.connect_slack(config, app.resolve()?, bot.resolve()?).await?), None)
            }
            Connection::Chat => {
                (Arc::new(Chat::start().or_hint("pipe JSON lines in instead, as `docs/console.md` shows")?), None)
            }
            Connection::Lines => {
                let lines = Lines::start().map_err(|error| Failure::new(format!("cannot start: {error}")))?;
                let lines = Arc::new(lines);
                (Arc::<Lines>::clone(&lines), Some(lines))
            }
        })
    }

    async fn connect_slack(
        &self,
        config: &Config,
        app_token: SecretString,
        bot_token: SecretString,
    ) -> Result<Slack, Failure> {
        let api_url = self.slack_api_url.clone().or_else(|| variable("PMK_SLACK_API_URL"));
        let mut slack = SlackConfig::new(app_token, bot_token);
        slack.api_url = api_url.unwrap_or(slack.api_url);
        slack.allow_any_api_url = self.slack_api_url.is_some();
        slack.dry_run = is_dry_run()?;
        slack.request_timeout = Duration::from_secs_f64(config.limits.slack_call_seconds);
        Slack::connect(slack).await.map_err(|error| match error {
            FrontError::Fatal { what, hint } => Failure::new(what).hint(hint),
            other => Failure::new(other),
        })
    }
}

/// The ledger of a home; of a dry run one that nobody counts.
fn open_ledger(home: &Path, store: &Store) -> Result<Ledger, Failure> {
    if is_dry_run()? {
        store.is_of_a_dry_run();
    }
    Ok(Ledger::open(Arc::new(store.clone()), home::gateway_dir(home)))
}

/// Whether nothing may be written to Slack.
fn is_dry_run() -> Result<bool, Failure> {
    match variable(DRY_RUN).as_deref().map(str::trim) {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        // Taken for no, it would write to everybody.
        Some(_) => Err(Failure::new(format!("{DRY_RUN} is neither 0 nor 1")).hint("set it to 1, or unset it")),
    }
}
