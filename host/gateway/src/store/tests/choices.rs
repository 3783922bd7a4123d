//! Policies that are chosen for all hosts of a database.

use pmk_policy::ConfiguredSettings;
use serde_json::json;

use super::{
    hosts::{at_work, two},
    on_postgres::asked,
};

#[tokio::test]
async fn the_settings_of_a_promoted_arm_went_on_with_what_an_older_program_has_chosen_since() {
    let Some([one, _]) = two() else { return };
    let (store, _lock) = at_work(&one).await;
    let settings: ConfiguredSettings = serde_json::from_value(json!({"standard": {"seed-cap": 900}})).unwrap();
    let kept = async || store.choice().await.unwrap().unwrap().settings;
    store.choose(vec![], Some(settings.clone())).await.unwrap();
    assert_eq!(kept().await, Some(settings.clone()));
    store.choose(vec![], None).await.unwrap();
    assert_eq!(kept().await, None);
    store.choose(vec![], Some(settings)).await.unwrap();
    // It does not know of settings.
    asked(&one, |conn| conn.execute("UPDATE chosen_policies SET version = version + 1, layers = '[]'", []).unwrap());
    assert_eq!(kept().await, None);
}
