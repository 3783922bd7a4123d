//! `audience list|default|set|unset`: how the model speaks to whom (specification 003 §5).

use clap::{Args, Subcommand};
use pmk_system::error::Failure;
use serde_json::json;

use super::{
    change::make,
    context::Context,
    output::{print, print_json},
    text::printable,
};
use crate::{
    access::audience::{Audience, Audiences},
    operator::admin::{Change, ChangeError},
};

#[derive(Debug, Subcommand)]
pub(super) enum AudienceCommand {
    /// List who has which audience
    List,
    /// Set the audience of everyone who has none of their own
    Default(SetDefault),
    /// Set the audience of a person or channel
    Set(Set),
    /// Remove the audience of a person or channel
    Unset(Unset),
}

#[derive(Debug, Args)]
pub(super) struct SetDefault {
    /// One of tech, pm, biz, exec
    audience: String,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    /// User (U…, W…) or channel (C…, G…, D…) ID; a person's audience overrides the channel's
    #[arg(value_name = "USER-or-CHANNEL-ID")]
    id: String,
    /// One of tech, pm, biz, exec
    audience: String,
}

#[derive(Debug, Args)]
pub(super) struct Unset {
    /// User or channel ID, as printed by `audience list`
    #[arg(value_name = "USER-or-CHANNEL-ID")]
    id: String,
}

impl AudienceCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            AudienceCommand::List => list(context),
            AudienceCommand::Default(default) => default.run(context),
            AudienceCommand::Set(set) => set.run(context),
            AudienceCommand::Unset(unset) => unset.run(context),
        }
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let config = context.config()?;
    let Audiences { default, users, channels } = config.people.audience;
    if context.json {
        let effective = default.unwrap_or(Audience::FALLBACK);
        return print_json(&json!({
            "default": effective, "default_is_set": default.is_some(), "users": users, "channels": channels,
        }));
    }
    let everybody = match default {
        Some(audience) => ["default".into(), audience.to_string()],
        None => [context.translated("default (nothing set)").into_owned(), Audience::FALLBACK.to_string()],
    };
    let own = users.iter().chain(&channels).map(|(id, audience)| [printable(id), audience.to_string()]);
    let heading = ["WHO", "AUDIENCE"].map(str::to_owned);
    let rows: Vec<Vec<String>> = [heading, everybody].into_iter().chain(own).map(Vec::from).collect();
    print(&context.columns(&rows))
}

impl SetDefault {
    fn run(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::DefaultAudience { audience: self.audience.clone() })?;
        let audience: Audience = self.audience.parse().map_err(ChangeError::from)?;
        if context.json {
            return print_json(&json!({"default": audience}));
        }
        context.say(&format!("everybody without an audience is `{audience}`"));
        Ok(())
    }
}

impl Set {
    fn run(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::SetAudience { id: self.id.clone(), audience: self.audience.clone() })?;
        let audience: Audience = self.audience.parse().map_err(ChangeError::from)?;
        if context.json {
            return print_json(&json!({"id": self.id, "audience": audience}));
        }
        context.say(&format!("`{}` is `{audience}`", self.id));
        Ok(())
    }
}

impl Unset {
    fn run(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::UnsetAudience { id: self.id.clone() })?;
        if context.json {
            return print_json(&json!({"id": self.id, "audience": null}));
        }
        context.say(&format!("`{}` no longer has its own audience", self.id));
        Ok(())
    }
}
