//! Tests of the page of a sweep.

use oneport_measure::tune::page::page;
use oneport_measure::tune::{Summary, Trial};
use oneport_pictures::shell::Heading;

fn rows() -> Vec<Trial> {
    let mut rows = Vec::new();
    for bytes in [1u64 << 16, 1 << 18, 1 << 20] {
        for (i, algorithm) in ["chain", "bi-greedy"].into_iter().enumerate() {
            for segment in [bytes / 8, bytes / 4, bytes / 2] {
                let time = 1000 * bytes.isqrt() + bytes * bytes / segment + i as u64 * 777;
                rows.push(Trial {
                    bytes,
                    algorithm: algorithm.into(),
                    segment,
                    segments: (bytes / segment) as usize,
                    wall: Summary::of(&[time, time + 10, time + 20]).unwrap(),
                    model_time: time as f64 * 0.9,
                    best: i == 0 && segment == bytes / 2,
                    best_segment: segment == bytes / 2,
                    settled: segment != bytes / 4,
                });
            }
        }
    }
    rows
}

fn heading() -> Heading {
    Heading {
        title: "oneport tune reduce, 8 ranks, paced".into(),
        summary: vec![
            ("machine", "A & B <C>".into()),
            (
                "command",
                "oneport tune reduce --csv \"a b.csv\" </script>".into(),
            ),
        ],
        warnings: vec!["8 ranks on 2 cores".into()],
    }
}

/// Asserts that tags are balanced; the contents of scripts and styles are skipped.
fn assert_balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag
            .trim_start_matches('/')
            .split_whitespace()
            .next()
            .unwrap();
        match tag {
            t if t.starts_with('!') || ["meta", "link"].contains(&name) => {}
            t if t.starts_with('/') => assert_eq!(open.pop(), Some(name), "near {rest:.60}"),
            _ => open.push(name),
        }
        if !tag.starts_with('/') && ["script", "style"].contains(&name) {
            rest = &rest[rest.find(&format!("</{name}>")).expect("it ends")..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn tags_are_balanced_and_ids_unique() {
    let rows = rows();
    let page = page(&heading(), &rows);
    assert_balanced(&page);
    let script = &page[page.rfind("<script").unwrap()..];
    for id in [
        "by-size",
        "by-segment",
        "by-model",
        "legend",
        "size",
        "data",
        "best",
        "all",
    ] {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        let used = script.contains(&format!("\"{id}\"")) || ["best", "all"].contains(&id);
        assert!(used, "{id}");
    }
    assert!(page.contains("A &amp; B &lt;C&gt;"));
    assert!(!page.contains("</script>\" "), "the command ends no script");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = page(&heading(), &rows());
    for word in [
        "http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(", "import ",
    ] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn the_page_contains_all_rows() {
    let rows = rows();
    let page = page(&heading(), &rows);
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
    let listed = data["rows"].as_array().unwrap();
    assert_eq!(listed.len(), rows.len());
    for (json, row) in listed.iter().zip(&rows) {
        assert_eq!(json["bytes"], row.bytes);
        assert_eq!(json["segment"], row.segment);
        assert_eq!(json["wall"], row.wall.median);
        // The parser may be off in the last digit.
        let model_time = json["model_time"].as_f64().unwrap();
        assert!((model_time / row.model_time - 1.0).abs() < 1e-12);
        assert_eq!(json["algorithm"], row.algorithm);
        // Fields that the script reads.
        for field in [
            "segments",
            "min",
            "p99",
            "low",
            "high",
            "repetitions",
            "best",
            "best_segment",
            "settled",
        ] {
            assert!(!json[field].is_null(), "{field}");
        }
    }
    assert_eq!(page.matches("<td class=\"name\">").count(), rows.len() + 6);
}
