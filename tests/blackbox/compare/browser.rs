//! The page in a real browser, light and dark.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use pmk_stand_ins::not_run;

use super::compared;

/// Set where a machine without a browser is a mistake.
const REQUIRED: &str = "PMK_TEST_CHROMIUM";

/// The browser; without one the test says that it did not run.
fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var_os(REQUIRED).is_none(), "`{REQUIRED}` is set and there is no chromium");
        not_run::say("no chromium is installed, so the HTML report was not looked at");
    }
    found
}

fn look(browser: &Path, page: &Path, dark: bool, more: &[&str]) -> Output {
    let profile = tempfile::tempdir().expect("a folder");
    // 0 is dark, 1 is light.
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
    Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .args(["--enable-logging=stderr", "--log-level=0", "--window-size=1100,2400", &scheme])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts")
}

#[test]
fn the_page_is_whole_in_a_browser_light_and_dark() {
    let Some(browser) = browser() else { return };
    let page = &compared().page;
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare");
    std::fs::create_dir_all(&shots).expect("a folder");
    let mut pictures = Vec::new();
    for (name, dark) in [("light", false), ("dark", true)] {
        let output = look(&browser, page, dark, &["--dump-dom"]);
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("CONSOLE"), "{said}");
        assert_eq!(dom.matches("<svg viewBox").count(), 2, "two charts");
        for wanted in
            ["Policies compared", "rolling-summary", "Side by side", "● kept", "○ dropped", "Σ summarized", "</html>"]
        {
            assert!(dom.contains(wanted), "`{wanted}` is missing");
        }
        assert!(!dom.contains("<script"), "no script");
        let shot = shots.join(format!("{name}.png"));
        let _ = std::fs::remove_file(&shot);
        look(&browser, page, dark, &[&format!("--screenshot={}", shot.display())]);
        let picture = std::fs::read(&shot).unwrap_or_else(|error| panic!("no picture: {error}"));
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{} bytes", picture.len());
        pictures.push(picture);
    }
    assert_ne!(pictures[0], pictures[1], "dark is not light");
}
