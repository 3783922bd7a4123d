//! `run`: the gateway itself.

use std::{io::IsTerminal, path::Path, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{Context, layers::LayerArguments, logging, note};
use crate::{
    audience::Prompts,
    child,
    config::{Config, MraConfig, SlackTokens},
    error::{Failure, OrHint},
    front::{
        Front, FrontError,
        console::{Chat, Lines},
        slack::{Slack, SlackConfig},
    },
    gateway::{Gateway, Parts},
    home::{self, HomeLock},
    knowledge::{Ingest, Library, Seeder},
    ledger::Ledger,
    model::{self, Environment, Model, ModelSpec},
    mra::{self, Mra},
    store::Store,
};

/// The model of a configuration that names none (seed 000).
const DEFAULT_MODEL: &str = "claude-cli";
/// The model where there is no configuration either.
const MODEL_WITHOUT_CONFIG: &str = "sim";

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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
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

impl Run {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let (mut config, warnings) = Config::load(&home::config_file(&context.home))?;
        if let Some(workspace) = std::env::var_os("PMK_MRA_WORKSPACE").filter(|workspace| !workspace.is_empty()) {
            config.mra_workspace = Some(workspace.into());
        }
        let tokens = slack_tokens(&config.slack);
        let front = self.choose_front(&tokens);
        let chat = front == FrontChoice::Console && std::io::stdin().is_terminal();
        logging::start(chat, context.json);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let lock = HomeLock::take(&context.home)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let finished = runtime.block_on(self.serve(context, &lock, config, front, &tokens, chat));
        // A terminal or a stream that never ends has a reader that cannot be woken.
        runtime.shutdown_timeout(Duration::from_millis(100));
        finished
    }

    async fn serve(
        self,
        context: &Context,
        lock: &HomeLock,
        config: Config,
        front: FrontChoice,
        tokens: &SlackTokens,
        chat: bool,
    ) -> Result<(), Failure> {
        let stack = self.layers.load(&context.home, &config.policy)?;
        let model = self.open_model(&context.home, &config)?;
        let store = Store::open(&context.home)?;
        store.void_leases(lock).await?;
        let stop = CancellationToken::new();
        stop_on_signals(&stop)?;
        let front: Arc<dyn Front> = match front {
            FrontChoice::Slack => Arc::new(self.connect_slack(&config, tokens).await?),
            FrontChoice::Console if chat => {
                Arc::new(Chat::start().or_hint("pipe JSON lines in instead, as the README shows")?)
            }
            FrontChoice::Console => {
                Arc::new(Lines::start().map_err(|error| Failure::new(format!("cannot start: {error}")))?)
            }
        };
        let parts = Parts {
            store,
            stack,
            model,
            front,
            ledger: Ledger::open(home::gateway_dir(&context.home)),
            library: Library::open(&context.home).or_hint("is `knowledge` in the home a folder that you may write?")?,
            prompts: prompts(&context.home),
            mra: Mra::new(mra_config(&config)),
            seeder: seeder(&config),
            config,
        };
        Gateway::new(parts, stop).run().await
    }

    fn choose_front(&self, tokens: &SlackTokens) -> FrontChoice {
        if let Some(front) = self.front {
            return front;
        }
        if tokens.app_token.is_some() && tokens.bot_token.is_some() {
            return FrontChoice::Slack;
        }
        note("front: console, because there are no Slack tokens");
        note("  hint: set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN to connect Slack");
        FrontChoice::Console
    }

    fn open_model(&self, home: &Path, config: &Config) -> Result<Arc<dyn Model>, Failure> {
        let named = self.model.as_deref().or(config.model.as_deref());
        let spec: ModelSpec = match named {
            Some(named) => named.parse()?,
            None if config.exists => DEFAULT_MODEL.parse()?,
            None => {
                note("model: sim, a stand-in that quotes the conversation, because no model is named");
                note("  hint: `--model anthropic-api` with ANTHROPIC_API_KEY set asks a real one");
                MODEL_WITHOUT_CONFIG.parse()?
            }
        };
        let mut environment = Environment::of_process(home);
        if let (None, Some(key)) = (&environment.anthropic_api_key, &config.api_key) {
            environment.anthropic_api_key = Some(key.resolve()?);
        }
        environment.idle_timeout = Some(Duration::from_secs_f64(config.limits.model_idle_seconds));
        environment.call_timeout = Some(Duration::from_secs_f64(config.limits.model_total_seconds));
        Ok(model::open(&spec.with_window(self.window), &environment)?)
    }

    async fn connect_slack(&self, config: &Config, tokens: &SlackTokens) -> Result<Slack, Failure> {
        let (Some(app_token), Some(bot_token)) = (tokens.app_token.clone(), tokens.bot_token.clone()) else {
            return Err(Failure::new("Slack needs an app token (xapp-…) and a bot token (xoxb-…)")
                .hint("set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or `slack` in gateway.json"));
        };
        let api_url = self.slack_api_url.clone().or_else(|| std::env::var("PMK_SLACK_API_URL").ok());
        let mut slack = SlackConfig::new(app_token, bot_token);
        slack.api_url = api_url.unwrap_or(slack.api_url);
        slack.allow_any_api_url = self.slack_api_url.is_some();
        slack.request_timeout = Duration::from_secs_f64(config.limits.slack_call_seconds);
        Slack::connect(slack).await.map_err(|error| match error {
            FrontError::Fatal { what, hint } => Failure::new(what).hint(hint),
            other => Failure::new(other),
        })
    }
}

/// The system prompts, the operator's before ours.
fn prompts(home: &Path) -> Prompts {
    let (prompts, problems) = Prompts::load(home);
    for problem in problems {
        tracing::warn!("{problem}");
    }
    prompts
}

fn mra_config(config: &Config) -> mra::Config {
    let MraConfig { command, environment, time_limit_seconds } = &config.mra;
    let mut words = command.iter().map(Into::into);
    let named = environment.iter().map(String::as_str);
    mra::Config {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        workspace: config.mra_workspace.clone(),
        environment: child::inherit(mra::INHERITED.into_iter().chain(named)),
        time_limit: Duration::from_secs_f64(*time_limit_seconds),
    }
}

/// What opens a session.
fn seeder(config: &Config) -> Option<Seeder> {
    let ingest = config.default_ingest.clone()?;
    if ingest == Ingest::AllRepositories && config.mra_workspace.is_none() {
        tracing::warn!("`defaultIngest` is `{ingest}`, but no workspace is named: sessions begin without a seed");
        tracing::warn!("  hint: set `mraWorkspace` in gateway.json, or PMK_MRA_WORKSPACE");
        return None;
    }
    Some(Seeder::new(ingest, config.mra_workspace.clone().unwrap_or_default()))
}

/// The tokens of the environment, else of the file.
fn slack_tokens(file: &SlackTokens) -> SlackTokens {
    let token = |variable: &str, file: &Option<SecretString>| {
        std::env::var(variable).ok().filter(|token| !token.is_empty()).map(SecretString::from).or_else(|| file.clone())
    };
    SlackTokens {
        app_token: token("PMK_SLACK_APP_TOKEN", &file.app_token),
        bot_token: token("PMK_SLACK_BOT_TOKEN", &file.bot_token),
    }
}

/// The first SIGINT or SIGTERM lets running turns finish, the second ends the process: everything
/// accepted is stored.
fn stop_on_signals(stop: &CancellationToken) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |error| Failure::new(format!("cannot listen for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let stop = stop.clone();
    tokio::spawn(async move {
        for again in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if again {
                std::process::exit(130);
            }
            tracing::info!("stopping: running turns finish, nothing new begins");
            stop.cancel();
        }
    });
    Ok(())
}
