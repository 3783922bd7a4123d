//! What `pmk-host init` asks and tells, and what is to be done in Slack.

use super::Messages;

/// What `init` asks for.
#[derive(Clone, Copy, Debug)]
pub enum InitQuestion {
    Model,
    Key,
    Front,
    AppToken,
    BotToken,
}

impl Messages {
    /// A question of `init`.
    pub fn init_question(&self, question: InitQuestion) -> String {
        let id = match question {
            InitQuestion::Model => "init-model",
            InitQuestion::Key => "init-key",
            InitQuestion::Front => "init-front",
            InitQuestion::AppToken => "init-app-token",
            InitQuestion::BotToken => "init-bot-token",
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

    /// A variable that has to be there.
    pub fn init_variable(&self, name: &str) -> String {
        self.text("init-variable", [("name", name.into())])
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
    use InitQuestion::{AppToken, BotToken, Front, Key, Model};
    let mut said: Vec<String> =
        [Model, Key, Front, AppToken, BotToken].map(|asked| messages.init_question(asked)).into();
    said.extend(["anthropic-api", "openai", "claude-cli", "sim"].map(|name| messages.init_provider(name)));
    said.extend(["slack", "console"].map(|name| messages.init_front(name)));
    said.extend([
        messages.init_wrong_kind("xapp-"),
        messages.init_written("/home/a/.pmk/gateway.json"),
        messages.init_variable("ANTHROPIC_API_KEY"),
        messages.init_next("`pmk-host run`"),
        messages.init_mend("`pmk-host doctor`"),
        messages.app_description(),
        messages.app_command(),
        messages.manifest_steps("connections:write"),
        messages.manifest_next(),
    ]);
    said
}
