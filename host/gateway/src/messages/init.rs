//! Texts of `pmk-host init`, and the steps to do in Slack.

use super::Messages;

/// What `init` asks for.
#[derive(Clone, Copy, Debug)]
pub enum InitQuestion {
    Model,
    Address,
    Name,
    Key,
    Front,
    AppToken,
    BotToken,
}

/// The explanation of a question.
#[derive(Clone, Copy, Debug)]
pub enum InitExplanation {
    Address,
    Key,
    /// For a server that may not need a key.
    OwnKey,
    AppToken,
    BotToken,
    /// For a secret that gateway.json has.
    Kept,
    /// For a token that it has, with how it begins.
    KeptToken,
    /// For an address that it has.
    KeptAddress,
    /// For the name of a model that does not fit into the question.
    LongName,
}

/// The reply to an answer.
#[derive(Clone, Copy, Debug)]
pub enum InitWord {
    Taken,
    LeftOut,
    Kept,
    Needed,
    NoAddress,
}

impl Messages {
    /// A question of `init`.
    pub fn init_question(&self, question: InitQuestion) -> String {
        let id = match question {
            InitQuestion::Model => "init-model",
            InitQuestion::Address => "init-address",
            InitQuestion::Name => "init-name",
            InitQuestion::Key => "init-key",
            InitQuestion::Front => "init-front",
            InitQuestion::AppToken => "init-app-token",
            InitQuestion::BotToken => "init-bot-token",
        };
        self.text(id, [])
    }

    /// The explanation of a question, with the variable that can be set instead, how a token begins, or what Enter takes.
    pub fn init_explanation(&self, explanation: InitExplanation, named: &str) -> String {
        let id = match explanation {
            InitExplanation::Address => "init-address-about",
            InitExplanation::Key => "init-key-about",
            InitExplanation::OwnKey => "init-own-key-about",
            InitExplanation::AppToken => "init-app-token-about",
            InitExplanation::BotToken => "init-bot-token-about",
            InitExplanation::Kept => "init-kept-about",
            InitExplanation::KeptToken => "init-kept-token-about",
            InitExplanation::KeptAddress => "init-kept-address-about",
            InitExplanation::LongName => "init-long-name-about",
        };
        self.text(id, [("variable", named.into())])
    }

    /// The reply to an answer.
    pub fn init_word(&self, word: InitWord) -> String {
        let id = match word {
            InitWord::Taken => "init-taken",
            InitWord::LeftOut => "init-left-out",
            InitWord::Kept => "init-kept",
            InitWord::Needed => "init-needed",
            InitWord::NoAddress => "init-no-address",
        };
        self.text(id, [])
    }

    /// The description of a provider.
    pub fn init_provider(&self, name: &str) -> String {
        self.text(&format!("init-model-{name}"), [])
    }

    /// The description of a front.
    pub fn init_front(&self, name: &str) -> String {
        self.text(&format!("init-front-{name}"), [])
    }

    /// A token must begin with another prefix.
    pub fn init_wrong_kind(&self, begins: &str) -> String {
        self.text("init-wrong-kind", [("begins", begins.into())])
    }

    /// The file was written.
    pub fn init_written(&self, path: &str) -> String {
        self.text("init-written", [("path", path.into())])
    }

    /// The key and the address of a provider were removed from the file, because another provider is used now.
    pub fn init_parted(&self, provider: &str) -> String {
        self.text("init-parted", [("provider", provider.into())])
    }

    /// The key was removed from the file, because a server at another address is used now.
    pub fn init_moved(&self) -> String {
        self.text("init-moved", [])
    }

    /// Slack's tokens are set, and the terminal was chosen.
    pub fn init_slack_stays(&self) -> String {
        self.text("init-slack-stays", [])
    }

    /// A variable that must be set.
    pub fn init_variable(&self, name: &str) -> String {
        self.text("init-variable", [("name", name.into())])
    }

    /// A credential that systemd must pass.
    pub fn init_credential(&self, name: &str) -> String {
        self.text("init-credential", [("name", name.into())])
    }

    /// What to do next.
    pub fn init_next(&self, command: &str) -> String {
        self.text("init-next", [("command", command.into())])
    }

    /// What to do about a gateway that runs, and which a service may have started.
    pub fn init_restart(&self, command: &str) -> String {
        self.text("init-restart", [("command", command.into())])
    }

    /// What to do if something fails.
    pub fn init_mend(&self, command: &str) -> String {
        self.text("init-mend", [("command", command.into())])
    }

    /// The description of the app in Slack; Slack allows 140 characters.
    pub fn app_description(&self) -> String {
        self.text("app-description", [])
    }

    /// The description of its slash command.
    pub fn app_command(&self) -> String {
        self.text("app-command", [])
    }

    /// What to do with the manifest, and the scope that the app-level token needs.
    pub fn manifest_steps(&self, scope: &str) -> String {
        self.text("manifest-steps", [("scope", scope.into())])
    }

    /// What to do with the tokens.
    pub fn manifest_next(&self) -> String {
        self.text("manifest-next", [])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    use InitQuestion::{Address, AppToken, BotToken, Front, Key, Model, Name};
    use InitWord::{Kept, LeftOut, Needed, NoAddress, Taken};
    let mut said: Vec<String> =
        [Model, Address, Name, Key, Front, AppToken, BotToken].map(|asked| messages.init_question(asked)).into();
    let explained = [
        InitExplanation::Address,
        InitExplanation::Key,
        InitExplanation::OwnKey,
        InitExplanation::AppToken,
        InitExplanation::BotToken,
        InitExplanation::Kept,
        InitExplanation::KeptToken,
        InitExplanation::KeptAddress,
        InitExplanation::LongName,
    ];
    said.extend(explained.map(|explanation| messages.init_explanation(explanation, "OPENAI_API_KEY")));
    said.extend([Taken, LeftOut, Kept, Needed, NoAddress].map(|word| messages.init_word(word)));
    said.extend(["anthropic-api", "openai", "claude-cli", "sim"].map(|name| messages.init_provider(name)));
    said.extend(["slack", "console"].map(|name| messages.init_front(name)));
    said.extend([
        messages.init_wrong_kind("xapp-"),
        messages.init_written("/home/a/.pmk/gateway.json"),
        messages.init_parted("anthropic-api"),
        messages.init_moved(),
        messages.init_slack_stays(),
        messages.init_variable("ANTHROPIC_API_KEY"),
        messages.init_credential("pmk-slack-app-token"),
        messages.init_next("`pmk-host run`"),
        messages.init_restart("`pmk-host stop`"),
        messages.init_mend("`pmk-host doctor`"),
        messages.app_description(),
        messages.app_command(),
        messages.manifest_steps("connections:write"),
        messages.manifest_next(),
    ]);
    said
}
