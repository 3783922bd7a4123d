//! The sources of settings, and the errors about invalid ones.

use std::collections::BTreeMap;

use pmk_policy::{
    Description, Overrides, SetOverride, SettingError, SettingKind, SettingSpec, Settings, Value, Warning,
};
use serde_json::json;

fn description() -> Description {
    let spec = |name: &str, kind| SettingSpec { name: name.into(), kind, help: String::new() };
    Description {
        name: "strict".into(),
        version: "1".into(),
        about: String::new(),
        settings: vec![
            spec("max-session-tokens", SettingKind::Integer { default: 25_000, min: 1, max: 1_000_000 }),
            spec("seed-cap", SettingKind::Integer { default: 12_000, min: 100, max: 50_000 }),
            spec("keep-seed", SettingKind::Boolean { default: true }),
            spec("marker", SettingKind::Text { default: "…".into() }),
        ],
    }
}

fn set(values: &[&str]) -> Overrides {
    Overrides { set: values.iter().map(|value| value.parse().unwrap()).collect(), ..Overrides::default() }
}

fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn config(settings: serde_json::Value) -> BTreeMap<String, serde_json::Map<String, serde_json::Value>> {
    BTreeMap::from([("strict".to_owned(), settings.as_object().unwrap().clone())])
}

fn resolve(overrides: &Overrides) -> Result<(Settings, Vec<Warning>), SettingError> {
    Settings::resolve(&description(), overrides)
}

fn tokens(overrides: &Overrides) -> Value {
    resolve(overrides).unwrap().0.get("max-session-tokens").unwrap().clone()
}

#[test]
fn the_nearest_source_wins() {
    let mut overrides = Overrides::default();
    assert_eq!(tokens(&overrides), Value::Integer(25_000));
    overrides.config = config(json!({"max-session-tokens": 1_000, "keep-seed": false}));
    assert_eq!(tokens(&overrides), Value::Integer(1_000));
    overrides.env = env(&[("PMK_MAX_SESSION_TOKENS", " 2000 ")]);
    assert_eq!(tokens(&overrides), Value::Integer(2_000));
    overrides.set = set(&["strict.max-session-tokens=3000", "other.max-session-tokens=1"]).set;
    assert_eq!(tokens(&overrides), Value::Integer(3_000));
    let (settings, warnings) = resolve(&overrides).unwrap();
    assert_eq!(settings.get("keep-seed"), Some(&Value::Boolean(false)));
    assert_eq!(settings.get("seed-cap"), Some(&Value::Integer(12_000)));
    assert_eq!(warnings, []);
}

#[test]
fn an_invalid_variable_is_passed_over_with_a_warning() {
    for given in ["", "0", "-5", "1.5", "many", "99999999999999999999"] {
        let overrides = Overrides { env: env(&[("PMK_MAX_SESSION_TOKENS", given)]), ..Overrides::default() };
        let (settings, warnings) = resolve(&overrides).unwrap();
        assert_eq!(settings.get("max-session-tokens"), Some(&Value::Integer(25_000)), "{given}");
        assert_eq!(
            warnings[0].to_string(),
            format!("`PMK_MAX_SESSION_TOKENS` is `{given}`, not an integer from 1 to 1000000; ignored for `strict`")
        );
    }
    let outside = Overrides { env: env(&[("PMK_SEED_CAP", "99999")]), ..Overrides::default() };
    assert!(resolve(&outside).unwrap().1[0].to_string().contains("an integer from 100 to 50000"));
    let undeclared = Overrides { env: env(&[("PMK_MRA_RESULT_CAP", "x"), ("PATH", "/bin")]), ..Overrides::default() };
    assert_eq!(resolve(&undeclared).unwrap().1, []);
}

#[test]
fn layers_that_pass_over_the_same_value_warn_once() {
    let warning = |accepts: &str, policy: &str| Warning {
        variable: "PMK_SEED_CAP".into(),
        given: "many".into(),
        accepts: accepts.into(),
        policies: vec![policy.into()],
    };
    let merged =
        Warning::merge([warning("1 to 9", "strict"), warning("1 to 5", "mine"), warning("1 to 9", "standard")]);
    let shown: Vec<String> = merged.iter().map(Warning::to_string).collect();
    assert_eq!(
        shown,
        [
            "`PMK_SEED_CAP` is `many`, not 1 to 9; ignored for `strict`, `standard`",
            "`PMK_SEED_CAP` is `many`, not 1 to 5; ignored for `mine`",
        ]
    );
}

#[test]
fn an_unknown_setting_is_named_with_the_nearest_one() {
    let error = resolve(&set(&["strict.max_session_token=5"])).unwrap_err();
    assert_eq!(error.to_string(), "policy `strict` has no setting `max_session_token` (--set)");
    assert_eq!(error.hint().unwrap(), "did you mean `max-session-tokens`?");
    let error = resolve(&Overrides { config: config(json!({"colour": 1})), ..Overrides::default() }).unwrap_err();
    assert_eq!(error.to_string(), "policy `strict` has no setting `colour` (policy.settings)");
    assert_eq!(error.hint().unwrap(), "its settings are `max-session-tokens`, `seed-cap`, `keep-seed`, `marker`");
}

/// Regression: of several wrong settings, only the first was named.
#[test]
fn all_settings_that_are_refused_are_named_at_once() {
    let wrong = config(json!({"colour": 1, "keep-seed": 7, "seed-cap": 200}));
    let overrides = Overrides { config: wrong, set: set(&["strict.size=5"]).set, ..Overrides::default() };
    let refusals = Settings::refusals(&description(), &overrides);
    let named: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    assert_eq!(
        named,
        [
            "policy `strict` has no setting `colour` (policy.settings)",
            "setting `keep-seed` of policy `strict` is `true` or `false`, not `7` (policy.settings)",
            "policy `strict` has no setting `size` (--set)",
        ]
    );
    assert_eq!(resolve(&overrides).unwrap_err().to_string(), named[0]);
}

#[test]
fn an_ill_typed_value_says_what_is_accepted() {
    for (given, message) in [
        (
            "strict.seed-cap=lots",
            "setting `seed-cap` of policy `strict` is an integer from 100 to 50000, not `lots` (--set)",
        ),
        (
            "strict.seed-cap=99",
            "setting `seed-cap` of policy `strict` is an integer from 100 to 50000, not `99` (--set)",
        ),
        ("strict.keep-seed=yes", "setting `keep-seed` of policy `strict` is `true` or `false`, not `yes` (--set)"),
    ] {
        let error = resolve(&set(&[given])).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(error.hint().unwrap().starts_with("the default is `"), "{:?}", error.hint());
    }
    for value in [json!("5000"), json!(1.5), json!(null), json!([1]), json!(u64::MAX)] {
        let overrides = Overrides { config: config(json!({ "seed-cap": value })), ..Overrides::default() };
        assert!(matches!(resolve(&overrides), Err(SettingError::Invalid { origin: "policy.settings", .. })), "{value}");
    }
    let long = format!("strict.marker={}", "x".repeat(2_001));
    assert!(resolve(&set(&[&long])).unwrap_err().to_string().len() < 200);
}

#[test]
fn set_takes_a_policy_a_name_and_a_value() {
    let parsed: SetOverride = "strict.marker=a=b.c".parse().unwrap();
    assert_eq!((parsed.policy.as_str(), parsed.name.as_str(), parsed.value.as_str()), ("strict", "marker", "a=b.c"));
    for bad in ["", "strict", "strict.seed-cap", "seed-cap=5", ".seed-cap=5", "strict.=5"] {
        let error = bad.parse::<SetOverride>().unwrap_err();
        assert_eq!(error.to_string(), format!("`--set {bad}` is not `POLICY.NAME=VALUE`"));
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_policy_that_is_not_loaded_cannot_be_set() {
    let error = set(&["strickt.seed-cap=500"]).check_policies(["strict", "standard"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`--set` names policy `strickt`, which is not loaded; these are loaded: `strict`, `standard`"
    );
    assert_eq!(error.hint().unwrap(), "did you mean `strict`?");
    assert!(set(&["strict.seed-cap=500"]).check_policies(["strict"]).is_ok());
}
