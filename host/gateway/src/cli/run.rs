//! `run`: runs the gateway.

use std::{io::IsTerminal, path::Path, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use pmk_core::Language;
use pmk_knowledge::Library;
use pmk_models::{Environment, Provider};
use pmk_system::{
    child::supervisor,
    clock::Clock,
    error::{Failure, OrHint},
    home::{self, HomeLock},
    threads::offload,
};
use secrecy::SecretString;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    arguments::tokens as count,
    context::Context,
    layers::LayerArguments,
    logging,
    model_choice::{Chosen, open_model},
    mra,
    tokens::{DRY_RUN, NO_TOKENS, OfHome, SET_TOKENS, Token, Tokens, is_dry_run, no_tokens, slack_config},
    tty::{EndsEditing, Found},
};
use crate::{
    calibration::Calibration,
    config::{self, Config, LedgerConfig, SessionsConfig},
    front::{
        Front, FrontError,
        console::{Chat, Lines, Opening},
        slack::{Sharers, Slack},
    },
    gateway::Gateway,
    ledger::Ledger,
    messages::{Messages, Notice},
    policies::{self, Loader, Swapper},
    presence::{
        Presence,
        health_check::HealthCheck,
        manager::Manager,
        probes,
        state::{Phase, State},
    },
    services::{Parts, Services, SharedLibrary},
    sharing::{self, SyncTask},
    stderr::{self, Spinner, Taken},
    store::Store,
};

mod ending;
mod parts;
mod swapping;

use ending::{lost, stop_on_signals, while_present};

#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    layers: LayerArguments,

    /// Where people talk [default: slack with tokens, otherwise console]
    #[arg(long)]
    front: Option<FrontChoice>,

    /// Model to use: claude-cli[:NAME], anthropic-api[:NAME], openai[:NAME], sim
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// Model's context window in tokens, if not the provider's
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Base URL of Slack's Web API; any host is allowed, and the tokens are sent to it
    #[arg(long, value_name = "URL")]
    slack_api_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FrontChoice {
    Slack,
    Console,
}

/// What is needed to open the front.
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

impl Connection {
    /// Fetches the tokens.
    fn with_tokens(self, home: &Path) -> Result<Connection, Failure> {
        let (app, bot) = match self {
            Connection::Slack { app, bot } => (app, bot),
            other => return Ok(other),
        };
        match (app.resolve(), bot.resolve()) {
            (Ok(app), Ok(bot)) => Ok(Connection::Slack { app: Token::Known(app), bot: Token::Known(bot) }),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
            (Err(failure), Err(_)) => Err(one_of(failure, 1, &home::command(home, "doctor --offline"))),
        }
    }
}

impl Run {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let (mut config, warnings) = Config::load(&context.home)?;
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !context.json;
        let mut notes = Vec::new();
        if is_dry_run()? {
            notes.push(Notice::DryRun(DRY_RUN));
            // It erases nothing.
            config.sessions = SessionsConfig::default();
        }
        let connection = self.choose_front(&config, terminal, &mut notes)?;
        logging::start(matches!(connection, Connection::Chat), context.json, config.language);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        config.mra_workspace = mra::workspace(&config);
        let lock = HomeLock::take(&context.home)?;
        config::note_start(&context.home, config.exists).map_err(|error| Failure::new(&error).hint(error.hint()))?;
        let mut state = State::of_this_process();
        state.write(&context.home);
        // Fetching a token may run a command that takes long or prompts somebody. By now other processes see that this
        // home is taken, and can stop the gateway.
        supervisor::enable();
        let connection = connection.with_tokens(&context.home)?;
        let terminal = matches!(connection, Connection::Chat).then(Found::now);
        // Dropped after the runtime.
        let _ends_editing = terminal.clone().map(EndsEditing);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let finished = runtime.block_on(async {
            match self.assemble(context, &lock, config, connection, notes, terminal.as_ref()).await? {
                Some(assembled) => assembled.run(&context.home, &mut state).await,
                None => Ok(()),
            }
        });
        // A reader of a terminal or an endless stream cannot be woken.
        runtime.shutdown_timeout(Duration::from_millis(100));
        finished
    }

    /// Makes everything that a running gateway needs. `None` if it was asked to stop meanwhile.
    async fn assemble(
        self,
        context: &Context,
        lock: &HomeLock,
        config: Config,
        connection: Connection,
        mut notes: Vec<Notice>,
        terminal: Option<&Found>,
    ) -> Result<Option<Assembled>, Failure> {
        let messages = Messages::new(config.language);
        let vitals = HealthCheck::starting(&context.home);
        let manager = Arc::new(Manager::of_environment(Arc::clone(&vitals), Messages::new(config.language)));
        let probes = probes::start(config.health.listen, &vitals).await?;
        let loader = self.layers.loader(&context.home)?.speaking(config.language);
        let stack =
            loader.start(&config.policy).map_err(|first| self.refused(first, &loader, &config, &context.home))?;
        let chosen = Chosen::of(self.model.as_deref(), &config);
        let model = open_model(&chosen, self.window, Environment::of_process(&context.home), &config)?;
        notes.extend(chosen.notice());
        let prompts = parts::prompts(&context.home).speaking(config.language);
        parts::check_window(&*model, &prompts, &config)?;
        let store = open_store(context, &manager).await?;
        let last_sign = store.take_over(lock).await?;
        let (stop, asked) = (CancellationToken::new(), CancellationToken::new());
        stop_on_signals(&stop, &asked, terminal)?;
        // Printed once the start cannot fail any more.
        let at_a_terminal = matches!(connection, Connection::Chat);
        // The first screen of the chat has the content of the other notices.
        notes.retain(|notice| !at_a_terminal || matches!(notice, Notice::DryRun(_) | Notice::NoTokens));
        // JSON is English.
        let notices = Messages::new(if context.json { Language::English } else { config.language });
        for notice in notes {
            let (what, hint) = notices.notice(notice);
            context.notice(&what, Some(&hint));
        }
        let named_model = format!("{}:{}", model.provider(), model.name());
        let layers = policies::identities(&stack);
        let shown = messages.layers(&layers.iter().map(ToString::to_string).collect::<Vec<_>>());
        let is_stand_in = model.provider() == Provider::Sim.name();
        let opening =
            Opening { model: (!is_stand_in).then_some(&*named_model), window: model.window(), policies: &shown };
        let (front, lines, taken) = tokio::select! {
            biased;
            // Connecting to Slack may take a while.
            () = asked.cancelled() => return Ok(None),
            opened = self.open_front(&store, &context.home, &config, connection, &opening) => opened?,
        };
        let arms = loader.clone();
        let learnt = store.calibration(model.provider(), model.name()).await?;
        let takes_tools = store.takes_tools(model.provider(), model.name()).await?;
        let shared = match store.is_shared() {
            true => share(lock, &store, &manager).await?,
            false => vec![],
        };
        let library = Library::open(&context.home)
            .or_hint("check that `knowledge` in the home is a folder that you can write to")?;
        let ledger = open_ledger(&context.home, &store, config.ledger)?;
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
            mra: parts::mra(&context.home, &config),
            seeder: parts::seeder(&config),
            load: Arc::new(move |policy, origin| arms.arm(policy, origin)),
            config,
        };
        let policies = parts.config.policy.clone();
        let services = Services::new(parts, stop);
        let gateway = Gateway::new(&services);
        let swapper = Swapper::new(&context.home, swapping::ports(&services), loader, &policies);
        swapper.take_choice().await?;
        let swaps = swapping::start(lock, swapper, swapping::report(&services), gateway.dispatcher(), at_a_terminal)?;
        // From here on, the start cannot fail.
        let ports = gateway.presence(Arc::clone(&vitals), Arc::clone(&manager));
        let presence = Presence::begin(&context.home, ports, last_sign).await?;
        Ok(Some(Assembled {
            presence,
            swaps,
            gateway,
            services,
            shared,
            lines,
            asked,
            manager,
            vitals,
            _taken: taken,
            _probes: probes,
        }))
    }

    /// The failure of policies that do not load, of which the command names all: `config check` does not know those of
    /// the command line.
    fn refused(&self, first: Failure, loader: &Loader, config: &Config, home: &Path) -> Failure {
        let more = loader.all_refusals(&config.policy, first.clone()).len().saturating_sub(1);
        let options = self.layers.words();
        let command = match options.is_empty() {
            true => home::command(home, "config check"),
            false => {
                let words = ["doctor", "--offline"].into_iter().chain(options.iter().map(String::as_str));
                home::command(home, &shlex::try_join(words).unwrap_or_default())
            }
        };
        one_of(first, more, &command)
    }

    /// Chooses Slack if it was requested or its tokens are set, otherwise the console. If gateway.json has Slack
    /// settings but there are no tokens, a person at a terminal gets a notice, and without a terminal the start fails.
    fn choose_front(&self, config: &Config, terminal: bool, notes: &mut Vec<Notice>) -> Result<Connection, Failure> {
        let console = if terminal { Connection::Chat } else { Connection::Lines };
        let missing = match self.front {
            Some(FrontChoice::Console) => None,
            _ => match Tokens::of(&config.slack).pair()? {
                Some((app, bot)) => return Ok(Connection::Slack { app, bot }),
                None => Some((NO_TOKENS, SET_TOKENS)),
            },
        };
        match missing {
            Some((what, hint)) if self.front == Some(FrontChoice::Slack) || self.slack_api_url.is_some() => {
                Err(Failure::new(format!("cannot connect to Slack: {what}")).hint(hint))
            }
            None if self.slack_api_url.is_some() => {
                Err(Failure::new("the console does not use `--slack-api-url`").hint("omit it, or use `--front slack`"))
            }
            Some(_) if config.names_slack && !terminal => Err(no_tokens()),
            Some(_) => {
                notes.push(if config.names_slack { Notice::NoTokens } else { Notice::Console });
                Ok(console)
            }
            None => Ok(console),
        }
    }

    /// Opens the front. Also returns the JSON lines if it is that, and the terminal if a chat has taken it.
    async fn open_front(
        &self,
        store: &Store,
        home: &Path,
        config: &Config,
        connection: Connection,
        opening: &Opening<'_>,
    ) -> Result<(Arc<dyn Front>, Option<Arc<Lines>>, Option<Taken>), Failure> {
        Ok(match connection {
            Connection::Slack { app, bot } => {
                let waiting = Spinner::when_long("connecting to Slack");
                let slack = self.connect_slack(store, home, config, (app.resolve()?, bot.resolve()?)).await?;
                drop(waiting);
                (Arc::new(slack), None, None)
            }
            Connection::Chat => {
                let chat = Chat::start(Messages::new(config.language), opening);
                let chat = chat.or_hint("pipe in JSON lines instead, see `docs/console.md`")?;
                let taken = stderr::take(chat.aside());
                (Arc::new(chat), None, Some(taken))
            }
            Connection::Lines => {
                let lines = Lines::start().map_err(|error| Failure::new(format!("cannot start: {error}")))?;
                let lines = Arc::new(lines);
                (Arc::<Lines>::clone(&lines), Some(lines), None)
            }
        })
    }

    async fn connect_slack(
        &self,
        store: &Store,
        home: &Path,
        config: &Config,
        (app_token, bot_token): (SecretString, SecretString),
    ) -> Result<Slack, Failure> {
        let mut slack = slack_config(config, self.slack_api_url.as_deref(), app_token, bot_token)?;
        slack.source = Some(Arc::new(OfHome(home.to_owned())));
        slack.sharers = Sharers::of(store.hosts_at_work());
        slack.fence = store.is_shared().then(|| Arc::new(store.fence()) as _);
        Slack::connect(slack).await.map_err(|error| match error {
            FrontError::Fatal { what, hint } => Failure::new(what).hint(hint),
            other => Failure::new(other),
        })
    }
}

/// A failure that is one of several; the command names all of them.
fn one_of(failure: Failure, more: usize, command: &str) -> Failure {
    if more == 0 {
        return failure;
    }
    Failure::new(format!("{} (and {more} more)", failure.message())).hint(format!("`{command}` lists all problems"))
}

/// A gateway that can run.
struct Assembled {
    presence: Arc<Presence>,
    /// The tasks that receive the operator's requests.
    swaps: JoinSet<()>,
    gateway: Gateway,
    services: Arc<Services>,
    /// What is shared with the other hosts of the database.
    shared: Vec<SyncTask>,
    /// The front, if it is JSON lines.
    lines: Option<Arc<Lines>>,
    /// Cancelled when the gateway is asked to stop.
    asked: CancellationToken,
    manager: Arc<Manager>,
    vitals: Arc<HealthCheck>,
    _taken: Option<Taken>,
    _probes: JoinSet<()>,
}

impl Assembled {
    /// Runs until it is stopped or cannot go on.
    async fn run(self, home: &Path, state: &mut State) -> Result<(), Failure> {
        let Assembled { presence, mut swaps, gateway, services, shared, lines, .. } = self;
        state.phase = Phase::Ready;
        state.write(home);
        self.vitals.set_ready(swapping::report(&services));
        self.manager.ready();
        let model = format!("{}:{}", services.model.provider(), services.model.name());
        let serving = policies::names(&policies::identities(services.policies.serving().stack()));
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(version, model, policies = serving, home = %home.display(), "ready");
        let finished = tokio::select! {
            biased;
            // Without the store, nothing can be stored any more, so nothing is waited for except the cleanup that no
            // other process can do.
            how = services.store.lost() => {
                let why = lost(&services.ledger, &services.stop, how);
                services.take_back().await;
                Err(why)
            }
            finished = while_present(&gateway, &presence, &self.asked, || {
                state.phase = Phase::Leaving;
                state.write(home);
            }) => finished,
            // This host can no longer report the outcome of what it has begun; other hosts can.
            why = gateway.cut_off(), if services.store.is_shared() => {
                services.stop.cancel();
                Err(why)
            }
        };
        // Ends with the latest changes shared.
        for shared in shared {
            shared.end().await;
        }
        // They hold the ledger, which writes its last events when it is dropped.
        swaps.shutdown().await;
        drop((presence, gateway, services));
        match lines.as_ref().and_then(|lines| lines.failure()) {
            Some(what) => Err(Failure::new(format!("cannot write to standard output: {what}"))
                .hint("accepted messages are stored and will be answered after the next start")),
            None => finished,
        }
    }
}

/// Opens the store. A large one takes minutes to be copied and upgraded.
async fn open_store(context: &Context, manager: &Manager) -> Result<Store, Failure> {
    let _waiting = Spinner::when_long("bringing the database up to date");
    let place = context.place()?;
    tokio::select! {
        opened = offload(move || Store::open(place)) => Ok(opened?),
        never = manager.keep_waiting() => match never {},
    }
}

/// Starts sharing the configuration and the atoms with the other hosts of the database.
async fn share(lock: &HomeLock, store: &Store, manager: &Manager) -> Result<Vec<SyncTask>, Failure> {
    let config = sharing::keep_config(lock, store.clone(), Clock::system()).await;
    let _waiting = Spinner::when_long("comparing the atoms with those of the database");
    tokio::select! {
        begun = sharing::keep_atoms(lock, store.clone(), Clock::system()) => {
            Ok(vec![config, begun.or_hint("check that `knowledge` in the home is a folder that you can write to")?])
        }
        never = manager.keep_waiting() => match never {},
    }
}

/// Opens the ledger of a home; that of a dry run is marked as such.
fn open_ledger(home: &Path, store: &Store, kept: LedgerConfig) -> Result<Ledger, Failure> {
    let (waiting, folder) = (Arc::new(store.clone()), home::gateway_dir(home));
    if is_dry_run()? {
        store.is_of_a_dry_run();
        // A dry run deletes no files of the ledger.
        return Ok(Ledger::open(waiting, folder));
    }
    Ok(match kept.keep_months {
        Some(months) => Ledger::open_keeping(waiting, folder, months),
        None => Ledger::open(waiting, folder),
    })
}
