//! The findings and hints of `pmk-host doctor`.

use std::path::Path;

use jiff::SignedDuration;

use super::Messages;

/// A remark without values.
#[derive(Clone, Copy, Debug)]
pub enum DoctorRemark {
    BecauseOfConfig,
    BecauseOfHome,
    Offline,
    LateHint,
    HomeSay,
    HomeFirstRun,
    HomeNetworkHint,
    HomeMakeRoom,
    HomeWriteHint,
    StoreNone,
    ConfigNone,
    ConfigWell,
    TlsHint,
    SlackNone,
    SlackNoneHint,
    SlackConsole,
    SlackKinds,
    SlackSilentHint,
    SlackSocket,
    AdminsNone,
    ScopesAll,
    ScopesUnknown,
    ScopesUntold,
    ScopesHint,
    ClockUnknown,
    ClockOfCertificates,
    ClockHint,
    ModelUnnamed,
    ModelClaudeHint,
    ModelLater,
    ModelCredentials,
    ModelBilling,
    ModelName,
    ModelNetwork,
    ModelClock,
    ModelSmall,
    PoliciesHint,
    MraNone,
    MraMissingHint,
    MraNoFolderHint,
    GatewayNone,
    GatewayWorkHint,
}

impl DoctorRemark {
    const fn id(self) -> &'static str {
        match self {
            DoctorRemark::BecauseOfConfig => "doctor-because-of-config",
            DoctorRemark::BecauseOfHome => "doctor-because-of-home",
            DoctorRemark::Offline => "doctor-offline",
            DoctorRemark::LateHint => "doctor-late-hint",
            DoctorRemark::HomeSay => "doctor-home-say",
            DoctorRemark::HomeFirstRun => "doctor-home-first-run",
            DoctorRemark::HomeNetworkHint => "doctor-home-network-hint",
            DoctorRemark::HomeMakeRoom => "doctor-home-make-room",
            DoctorRemark::HomeWriteHint => "doctor-home-write-hint",
            DoctorRemark::StoreNone => "doctor-store-none",
            DoctorRemark::ConfigNone => "doctor-config-none",
            DoctorRemark::ConfigWell => "doctor-config-well",
            DoctorRemark::TlsHint => "doctor-tls-hint",
            DoctorRemark::SlackNone => "doctor-slack-none",
            DoctorRemark::SlackNoneHint => "doctor-slack-none-hint",
            DoctorRemark::SlackConsole => "doctor-slack-console",
            DoctorRemark::SlackKinds => "doctor-slack-kinds",
            DoctorRemark::SlackSilentHint => "doctor-slack-silent-hint",
            DoctorRemark::SlackSocket => "doctor-slack-socket",
            DoctorRemark::AdminsNone => "doctor-admins-none",
            DoctorRemark::ScopesAll => "doctor-scopes-all",
            DoctorRemark::ScopesUnknown => "doctor-scopes-unknown",
            DoctorRemark::ScopesUntold => "doctor-scopes-untold",
            DoctorRemark::ScopesHint => "doctor-scopes-hint",
            DoctorRemark::ClockOfCertificates => "doctor-clock-of-certificates",
            DoctorRemark::ClockUnknown => "doctor-clock-unknown",
            DoctorRemark::ClockHint => "doctor-clock-hint",
            DoctorRemark::ModelUnnamed => "doctor-model-unnamed",
            DoctorRemark::ModelClaudeHint => "doctor-model-claude-hint",
            DoctorRemark::ModelLater => "doctor-model-later",
            DoctorRemark::ModelCredentials => "doctor-model-credentials",
            DoctorRemark::ModelBilling => "doctor-model-billing",
            DoctorRemark::ModelName => "doctor-model-name",
            DoctorRemark::ModelClock => "doctor-model-clock",
            DoctorRemark::ModelNetwork => "doctor-model-network",
            DoctorRemark::ModelSmall => "doctor-model-small",
            DoctorRemark::PoliciesHint => "doctor-policies-hint",
            DoctorRemark::MraNone => "doctor-mra-none",
            DoctorRemark::MraMissingHint => "doctor-mra-missing-hint",
            DoctorRemark::MraNoFolderHint => "doctor-mra-no-folder-hint",
            DoctorRemark::GatewayNone => "doctor-gateway-none",
            DoctorRemark::GatewayWorkHint => "doctor-gateway-work-hint",
        }
    }
}

/// A finding about the home.
#[derive(Clone, Copy, Debug)]
pub enum HomeFound<'a> {
    Well {
        owner: u32,
        mode: u32,
        mib: u64,
    },
    NotSeen {
        error: &'a str,
    },
    NoneYet,
    NotWritten {
        error: &'a str,
    },
    /// A file of the ledger.
    LedgerNotWritten {
        error: &'a str,
    },
    /// Another file.
    FileNotWritten {
        error: &'a str,
    },
    Open {
        mode: u32,
    },
    Network {
        kind: &'a str,
    },
    LittleRoom {
        mib: u64,
    },
}

/// A finding about the store.
#[derive(Clone, Copy, Debug)]
pub struct StoreFound {
    pub schema: u32,
    /// The schema that the next start migrates it to.
    pub known: u32,
    pub mib: u64,
    /// Whether all of it was read.
    pub is_read: bool,
}

/// A finding about the model.
#[derive(Clone, Copy, Debug)]
pub enum ModelFound {
    Answers,
    StandIn,
    /// The program `claude`.
    Program,
    Offline,
}

/// A finding about the program `mra` and its workspace.
#[derive(Clone, Copy, Debug)]
pub enum MraFound<'a> {
    Well { workspace: &'a Path },
    Alone,
    Missing,
    NoFolder { workspace: &'a Path },
}

/// The owner of a reference clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOf {
    Slack,
    Model,
}

impl ClockOf {
    const fn name(self) -> &'static str {
        match self {
            ClockOf::Slack => "slack",
            ClockOf::Model => "model",
        }
    }
}

impl Messages {
    /// Returns a remark.
    pub fn doctor(&self, remark: DoctorRemark) -> String {
        self.text(remark.id(), [])
    }

    /// The page that explains it.
    pub fn doctor_see(&self, page: &str) -> String {
        self.text("doctor-see", [("page", page.into())])
    }

    /// These variables must be set before the check is possible.
    pub fn doctor_until_set(&self, variables: &[String]) -> String {
        self.text("doctor-until-set", [("variables", self.listed(variables).into())])
    }

    /// A service manager passes these credentials to the gateway alone.
    pub fn doctor_passed(&self, credentials: &[String]) -> String {
        self.text("doctor-passed", [("credentials", self.listed(credentials).into())])
    }

    /// The command that makes the checks with the credentials.
    pub fn doctor_passed_hint(&self, command: &str) -> String {
        self.text("doctor-passed-hint", [("command", command.into())])
    }

    /// A check took longer than this.
    pub fn doctor_late(&self, seconds: u64) -> String {
        self.text("doctor-late", [("seconds", seconds.into())])
    }

    /// The finding about the home at this path.
    pub fn doctor_home(&self, path: &Path, found: HomeFound<'_>) -> String {
        let path = ("path", path.display().to_string().into());
        let octal = |mode: u32| format!("{mode:03o}").into();
        match found {
            HomeFound::Well { owner, mode, mib } => {
                let filled =
                    [path, ("uid", owner.to_string().into()), ("mode", octal(mode)), ("mib", mib.to_string().into())];
                self.text("doctor-home-well", filled)
            }
            HomeFound::NotSeen { error } => self.text("doctor-home-not-seen", [path, ("error", error.into())]),
            HomeFound::LedgerNotWritten { error } => {
                self.text("doctor-home-ledger-not-written", [path, ("error", error.into())])
            }
            HomeFound::FileNotWritten { error } => {
                self.text("doctor-home-file-not-written", [path, ("error", error.into())])
            }
            HomeFound::NotWritten { error } => self.text("doctor-home-not-written", [path, ("error", error.into())]),
            HomeFound::NoneYet => self.text("doctor-home-none-yet", [path]),
            HomeFound::Open { mode } => self.text("doctor-home-open", [path, ("mode", octal(mode))]),
            HomeFound::Network { kind } => self.text("doctor-home-network", [path, ("kind", kind.into())]),
            HomeFound::LittleRoom { mib } => {
                self.text("doctor-home-little-room", [path, ("mib", mib.to_string().into())])
            }
        }
    }

    /// The finding about the store of the home.
    pub fn doctor_store(&self, StoreFound { schema, known, mib, is_read }: StoreFound) -> String {
        let is = |it: bool| if it { "yes" } else { "no" }.into();
        let filled = [
            ("schema", schema.to_string().into()),
            ("known", known.to_string().into()),
            ("mib", mib.to_string().into()),
            ("older", is(schema < known)),
            ("read", is(is_read)),
        ];
        self.text("doctor-store-well", filled)
    }

    /// The database that the store is in, its schema and the one that this program needs, and the host that uses it.
    pub fn doctor_database(&self, (schema, known): (u32, u32), name: &str, host: Option<&str>) -> String {
        let is = |it: bool| if it { "yes" } else { "no" }.into();
        let filled = [
            ("name", name.to_owned().into()),
            ("schema", schema.to_string().into()),
            ("known", known.to_string().into()),
            ("older", is(schema < known)),
            ("used", is(host.is_some())),
            ("host", host.unwrap_or_default().to_owned().into()),
        ];
        self.text("doctor-store-database", filled)
    }

    /// The file to correct.
    pub fn doctor_config_hint(&self, path: &Path) -> String {
        self.text("doctor-config-hint", [("path", path.display().to_string().into())])
    }

    /// The number of root certificates, of the system or embedded.
    pub fn doctor_tls(&self, count: usize, are_the_systems: bool) -> String {
        let id = if are_the_systems { "doctor-tls-well" } else { "doctor-tls-inside" };
        self.text(id, [("count", count.to_string().into())])
    }

    /// A variable names a place without readable root certificates, and what to do about it.
    pub fn doctor_tls_misled(&self, count: usize, variable: &str) -> (String, String) {
        let filled = [("count", count.to_string().into()), ("variable", variable.into())];
        (self.text("doctor-tls-misled", filled), self.text("doctor-tls-misled-hint", [("variable", variable.into())]))
    }

    /// The owner of the bot token.
    pub fn doctor_slack_bot(&self, name: &str, team: &str) -> String {
        self.text("doctor-slack-bot", [("name", name.into()), ("team", team.into())])
    }

    /// Slack has not answered within this time.
    pub fn doctor_slack_silent(&self, seconds: u64) -> String {
        self.text("doctor-slack-silent", [("seconds", seconds.into())])
    }

    /// A scope that the bot token lacks, and the feature that is lost without it.
    pub fn doctor_scope(&self, scope: &str, without: &str) -> String {
        self.text("doctor-scopes-without", [("scope", scope.into()), ("goes", self.goes(without).into())])
    }

    /// The feature that is lost without a scope, by its name.
    pub fn goes(&self, without: &str) -> String {
        self.text("doctor-scopes-goes", [("goes", without.into())])
    }

    /// What to do if there are no admins: the command adds one.
    pub fn doctor_admins_hint(&self, command: &str) -> String {
        self.text("doctor-admins-hint", [("command", command.into())])
    }

    /// This machine's clock agrees with the reference.
    pub fn doctor_clock(&self, whose: ClockOf) -> String {
        self.text("doctor-clock-well", [("whose", whose.name().into())])
    }

    /// How far this machine's clock is ahead of the reference.
    pub fn doctor_clock_off(&self, whose: ClockOf, ahead: SignedDuration) -> String {
        let minutes = ahead.abs().as_secs().saturating_add(30) / 60;
        let way = if ahead.is_negative() { "behind" } else { "ahead" };
        let filled = [("minutes", minutes.to_string().into()), ("way", way.into()), ("whose", whose.name().into())];
        self.text("doctor-clock-off", filled)
    }

    /// What to do about a gateway that is down: the command stops it.
    pub fn doctor_gateway_again(&self, stop: &str) -> String {
        self.text("doctor-gateway-again", [("stop", stop.into())])
    }

    /// The finding about the model of that name.
    pub fn doctor_model(&self, name: &str, found: ModelFound) -> String {
        let id = match found {
            ModelFound::Answers => "doctor-model-well",
            ModelFound::StandIn => "doctor-model-sim",
            ModelFound::Program => "doctor-model-claude",
            ModelFound::Offline => "doctor-model-offline",
        };
        self.text(id, [("model", name.into())])
    }

    /// The layers in a line, the top one first.
    pub fn layers(&self, layers: &[String]) -> String {
        layers.join(&self.text("layers-over", []))
    }

    /// The finding about the program of that name.
    pub fn doctor_mra(&self, program: &str, found: MraFound<'_>) -> String {
        let program = ("program", program.into());
        let within = |workspace: &Path| ("workspace", workspace.display().to_string().into());
        match found {
            MraFound::Well { workspace } => self.text("doctor-mra-well", [program, within(workspace)]),
            MraFound::Alone => self.text("doctor-mra-alone", [program]),
            MraFound::Missing => self.text("doctor-mra-missing", [program]),
            MraFound::NoFolder { workspace } => self.text("doctor-mra-no-folder", [within(workspace)]),
        }
    }

    /// No gateway is running, because a command has the home to itself.
    pub fn doctor_gateway_work(&self, command: &str, pid: u32) -> String {
        self.text("doctor-gateway-work", [("command", command.into()), ("pid", pid.to_string().into())])
    }

    /// A gateway is running, with the reasons if it is not healthy.
    pub fn doctor_gateway<'a>(&self, pid: u32, reasons: impl IntoIterator<Item = (&'a str, u64)>) -> String {
        let (pid, reasons) = (("pid", pid.to_string().into()), self.status_reasons(reasons));
        match reasons.is_empty() {
            true => self.text("doctor-gateway-well", [pid]),
            false => self.text("doctor-gateway-not-well", [pid, ("reasons", reasons.into())]),
        }
    }
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    use DoctorRemark as R;

    use crate::front::slack::app::SCOPES;

    let remarks = [
        [R::BecauseOfConfig, R::BecauseOfHome, R::Offline, R::LateHint, R::HomeSay, R::HomeFirstRun],
        [R::HomeNetworkHint, R::HomeMakeRoom, R::ConfigNone, R::ConfigWell, R::TlsHint, R::SlackNone],
        [R::SlackNoneHint, R::SlackConsole, R::SlackKinds, R::SlackSilentHint, R::SlackSocket, R::ScopesAll],
        [R::ScopesUnknown, R::ScopesUntold, R::ScopesHint, R::ClockUnknown, R::ClockHint, R::ModelUnnamed],
        [R::ModelLater, R::ModelCredentials, R::ModelBilling, R::ModelName, R::ModelNetwork, R::ModelSmall],
        [R::PoliciesHint, R::MraNone, R::MraMissingHint, R::MraNoFolderHint, R::GatewayNone, R::ModelClaudeHint],
        [R::GatewayWorkHint, R::ClockOfCertificates, R::ModelClock, R::AdminsNone, R::MraNone, R::TlsHint],
    ];
    let path = Path::new("/home/a/.pmk");
    let (ahead, behind) = (SignedDuration::from_mins(2), SignedDuration::from_mins(-2));
    let homes = [
        HomeFound::Well { owner: 1, mode: 0o700, mib: 9 },
        HomeFound::NotSeen { error: "no" },
        HomeFound::NotWritten { error: "no" },
        HomeFound::LedgerNotWritten { error: "no" },
        HomeFound::FileNotWritten { error: "no" },
        HomeFound::NoneYet,
        HomeFound::Open { mode: 0o755 },
        HomeFound::Network { kind: "NFS" },
        HomeFound::LittleRoom { mib: 9 },
    ];
    let models = [ModelFound::Answers, ModelFound::StandIn, ModelFound::Program, ModelFound::Offline];
    let mra = [
        MraFound::Well { workspace: path },
        MraFound::Alone,
        MraFound::Missing,
        MraFound::NoFolder { workspace: path },
    ];
    let mut said: Vec<String> = remarks.concat().into_iter().map(|remark| messages.doctor(remark)).collect();
    said.extend(homes.map(|found| messages.doctor_home(path, found)));
    said.extend(models.map(|found| messages.doctor_model("openai:x", found)));
    said.extend(mra.map(|found| messages.doctor_mra("mra", found)));
    said.extend(SCOPES.iter().filter_map(|scope| Some(messages.doctor_scope(scope.name, scope.without?.name()))));
    said.extend([ClockOf::Slack, ClockOf::Model].map(|whose| messages.doctor_clock(whose)));
    said.extend([
        messages.doctor_see("docs/slack.md"),
        messages.doctor_admins_hint("pmk-host admin add U012AB3CD"),
        messages.doctor_until_set(&["A".to_owned(), "B".to_owned()]),
        messages.doctor_late(10),
        messages.doctor_passed(&["A".to_owned(), "B".to_owned()]),
        messages.doctor_passed_hint("systemd-run"),
        messages.doctor_gateway_again("pmk-host stop"),
        messages.doctor_config_hint(path),
        messages.doctor_tls(140, true),
        messages.doctor_tls(140, false),
        messages.doctor_tls_misled(140, "SSL_CERT_FILE").0,
        messages.doctor_tls_misled(140, "SSL_CERT_FILE").1,
        messages.doctor_slack_bot("pmk", "Acme"),
        messages.doctor_slack_silent(10),
        messages.doctor_clock_off(ClockOf::Slack, ahead),
        messages.doctor_clock_off(ClockOf::Model, behind),
        messages.layers(&["strict".to_owned(), "standard".to_owned()]),
        messages.doctor_gateway(7, []),
        messages.doctor_gateway_work("store restore", 7),
        messages.doctor_gateway(7, [("waiting", 2), ("starting", 0)]),
    ]);
    said
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    #[test]
    fn every_sentence_is_in_its_language() {
        let is_chinese = |text: &String| text.chars().any(|c| ('\u{3000}'..='\u{ffef}').contains(&c));
        for language in Language::ALL {
            let expected = language == Language::TraditionalChinese;
            for said in everything(&Messages::new(language)) {
                assert_eq!(is_chinese(&said), expected, "{said}");
            }
        }
    }
}
