//! What `pmk-host init` asks and tells, and what is to be done in Slack.

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

/// What there is to know before one answers.
#[derive(Clone, Copy, Debug)]
pub enum InitExplanation {
    Address,
    Key,
    /// Of a server that may want none.
    OwnKey,
    AppToken,
    BotToken,
}

/// What is said of an answer.
#[derive(Clone, Copy, Debug)]
pub enum InitWord {
    Taken,
    LeftOut,
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

    /// What there is to know before one answers, and the variable that does instead.
    pub fn init_explanation(&self, explanation: InitExplanation, variable: &str) -> String {
        let id = match explanation {
            InitExplanation::Address => "init-address-about",
            InitExplanation::Key => "init-key-about",
            InitExplanation::OwnKey => "init-own-key-about",
            InitExplanation::AppToken => "init-app-token-about",
            InitExplanation::BotToken => "init-bot-token-about",
        };
        self.text(id, [("variable", variable.into())])
    }

    /// What is said of an answer.
    pub fn init_word(&self, word: InitWord) -> String {
        let id = match word {
            InitWord::Taken => "init-taken",
            InitWord::LeftOut => "init-left-out",
            InitWord::Needed => "init-needed",
            InitWord::NoAddress => "init-no-address",
        };
        self.text(id, [])
    }

    /// What a provider of that name is.
    pub fn init_provider(&self, name: &str) -> String {
        self.text(&format!("init-model-{name}"), [])
    }

    /// The front of that name.
    pub fn init_front(&self, name: &str) -> String {
        self.text(&format!("init-front-{name}"), [])
    }

    /// What was given for a token begins otherwise.
    pub fn init_wrong_kind(&self, begins: &str) -> String {
        self.text("init-wrong-kind", [("begins", begins.into())])
    }

    /// The file is written.
    pub fn init_written(&self, path: &str) -> String {
        self.text("init-written", [("path", path.into())])
    }

    /// The key and the address of a provider are taken out of the file, as another answers now.
    pub fn init_parted(&self, provider: &str) -> String {
        self.text("init-parted", [("provider", provider.into())])
    }

    /// A variable that has to be there.
    pub fn init_variable(&self, name: &str) -> String {
        self.text("init-variable", [("name", name.into())])
    }

    /// A credential that systemd has to hand over.
    pub fn init_credential(&self, name: &str) -> String {
        self.text("init-credential", [("name", name.into())])
    }

    /// What to do next.
    pub fn init_next(&self, command: &str) -> String {
        self.text("init-next", [("command", command.into())])
    }

    /// What to do next where something does not go.
    pub fn init_mend(&self, command: &str) -> String {
        self.text("init-mend", [("command", command.into())])
    }

    /// What people read of the app in Slack; Slack takes 140 characters.
    pub fn app_description(&self) -> String {
        self.text("app-description", [])
    }

    /// What they read of its slash command.
    pub fn app_command(&self) -> String {
        self.text("app-command", [])
    }

    /// What is to be done with the manifest, and the scope that the app-level token needs.
    pub fn manifest_steps(&self, scope: &str) -> String {
        self.text("manifest-steps", [("scope", scope.into())])
    }

    /// What is to be done with the tokens.
    pub fn manifest_next(&self) -> String {
        self.text("manifest-next", [])
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    use InitQuestion::{Address, AppToken, BotToken, Front, Key, Model, Name};
    use InitWord::{LeftOut, Needed, NoAddress, Taken};
    let mut said: Vec<String> =
        [Model, Address, Name, Key, Front, AppToken, BotToken].map(|asked| messages.init_question(asked)).into();
    let explained = [
        InitExplanation::Address,
        InitExplanation::Key,
        InitExplanation::OwnKey,
        InitExplanation::AppToken,
        InitExplanation::BotToken,
    ];
    said.extend(explained.map(|explanation| messages.init_explanation(explanation, "OPENAI_API_KEY")));
    said.extend([Taken, LeftOut, Needed, NoAddress].map(|word| messages.init_word(word)));
    said.extend(["anthropic-api", "openai", "claude-cli", "sim"].map(|name| messages.init_provider(name)));
    said.extend(["slack", "console"].map(|name| messages.init_front(name)));
    said.extend([
        messages.init_wrong_kind("xapp-"),
        messages.init_written("/home/a/.pmk/gateway.json"),
        messages.init_parted("anthropic-api"),
        messages.init_variable("ANTHROPIC_API_KEY"),
        messages.init_credential("pmk-slack-app-token"),
        messages.init_next("`pmk-host run`"),
        messages.init_mend("`pmk-host doctor`"),
        messages.app_description(),
        messages.app_command(),
        messages.manifest_steps("connections:write"),
        messages.manifest_next(),
    ]);
    said
}
