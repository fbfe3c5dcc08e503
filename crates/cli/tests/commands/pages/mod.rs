//! Tests of the HTML pages: in a headless browser where one is found, against the simulator and an
//! evaluator of their own.

mod atlas;
mod browser;
mod held;
mod others;
mod pictures;
mod reasons;
mod schedule;

use std::path::{Path, PathBuf};

use serde_json::Value;

use self::browser::Browser;

/// The sizes and themes in which every page is loaded, with a name for the screenshots.
const VIEWS: [(&str, (u32, u32), bool); 4] = [
    ("1280-light", (1280, 900), false),
    ("1280-dark", (1280, 900), true),
    ("390-light", (390, 800), false),
    ("390-dark", (390, 800), true),
];

/// The folder of the pages and screenshots, which people look at, too.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("oneport-pages");
    std::fs::create_dir_all(&folder).expect("a writable target folder");
    folder
}

/// Asserts that a loaded page has no errors, asks for nothing, is no wider than its window, that
/// its texts can be selected and read, and that what has the focus has a name. Takes a screenshot.
fn audit(browser: &mut Browser, view: &str, page: &Path) -> Value {
    let what = format!("{} {view}", page.display());
    let audit = audit_texts(browser, view, page);
    let overflow = audit["overflow"].as_i64().unwrap();
    assert!(overflow <= 0, "{what} is {overflow} pixels too wide");
    assert_eq!(browser.nameless(), [""; 0], "{what}");
    audit
}

/// The part of [`audit`] that holds for pictures as well, which may be wider than a window.
fn audit_texts(browser: &mut Browser, view: &str, page: &Path) -> Value {
    let what = format!("{} {view}", page.display());
    let audit = browser.eval(include_str!("audit.js"));
    assert_eq!(browser.complaints, [""; 0], "{what}");
    assert!(audit["texts"].as_u64().unwrap() > 10, "{what}: few texts");
    let contrast = audit["worst"]["contrast"].as_f64().unwrap();
    assert!(contrast >= 4.5, "{what}: {}", audit["worst"]);
    browser.screenshot(&page.with_extension(format!("{view}.png")));
    audit
}

/// Presses Tab until the focus is back at the start; returns the identifiers, or else the labels,
/// of what had it.
fn tab_order(browser: &mut Browser) -> Vec<String> {
    browser.eval("document.activeElement.blur()");
    let mut order = Vec::new();
    for _ in 0..60 {
        browser.press("Tab");
        let focused = browser
            .eval("document.activeElement.id || document.activeElement.getAttribute('aria-label')");
        order.push(focused.as_str().unwrap_or_default().to_string());
    }
    order
}
