//! Tests of the pictures (SVG) in a browser: they need no network, and their texts can be read and
//! selected, on a light and on a dark background.

use super::{Browser, VIEWS, audit_texts, folder};
use crate::support::run::oneport;

/// A name, what to draw, and texts in it.
const PICTURES: [(&str, &str, &[&str]); 6] = [
    (
        "gantt",
        "reduce -p 8 -a bi-greedy --bytes 4 --segments 4 --alpha 1 --beta 1 --gamma 1 --critical-path",
        &["send (to)", "on the critical path", "18"],
    ),
    (
        "gantt-blocks",
        "scatter -p 9 -a binary --sizes 3,0,2,5,1,4,0,7,2 --alpha 10 --beta 1",
        &["Rank of the first block", "55"],
    ),
    (
        "gantt-many",
        "broadcast -p 32 -a uni-greedy --ports uni --bytes 64KiB --segments 16 --alpha 1us --beta 1ns",
        &["receive (from)", "15: "],
    ),
    ("tree", "broadcast -p 16 -a binomial --as tree", &["64 KiB"]),
    (
        "tree-blocks",
        "gather -p 9 -a binary --sizes 3,0,2,5,1,4,0,7,2 --as tree",
        &["no messages (their blocks are empty): ranks 1, 6."],
    ),
    (
        "traffic",
        "reduce -p 8 -a butterfly --as traffic",
        &["64 KiB"],
    ),
];

#[test]
fn pictures_are_readable_in_both_themes() {
    let Some(mut browser) = Browser::start("the pictures") else {
        return;
    };
    for (name, arguments, texts) in PICTURES {
        for (theme, option) in [("light", ""), ("dark", "--dark")] {
            let path = folder().join(format!("{name}-{theme}.svg"));
            let draw = |path: &std::path::Path| {
                let draw = format!("draw {arguments} {option} -o {}", path.display());
                oneport(&draw).assert().success();
                std::fs::read(path).unwrap()
            };
            let drawn = draw(&path);
            assert!(drawn.len() < 1_000_000, "{name}: {} bytes", drawn.len());
            assert!(draw(&path) == drawn, "{name} gives different bytes");
            for (view, size, dark) in [VIEWS[0], VIEWS[3]] {
                browser.load(&path, size, dark);
                let audit = audit_texts(&mut browser, view, &path);
                let selected = audit["selected"].as_str().unwrap();
                for text in texts {
                    assert!(selected.contains(text), "{name}: no {text:?} in {selected}");
                }
            }
        }
    }
}
