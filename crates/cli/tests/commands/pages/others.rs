//! Tests of the pages of `tune` and of the collectives benchmark.

use oneport_measure::tune::page::page;
use oneport_measure::tune::{Summary, Trial};
use oneport_pictures::shell::Heading;

use super::{Browser, VIEWS, audit, folder, tab_order};
use crate::support::run::oneport;

#[allow(dead_code, clippy::print_stdout)]
#[path = "../../../../../benches/collectives/summary.rs"]
mod bench;

fn row(bytes: u64, algorithm: &str, segment: u64, ns: u64) -> Trial {
    Trial {
        bytes,
        algorithm: algorithm.into(),
        segment,
        segments: bytes.div_ceil(segment) as usize,
        wall: Summary::of(&[ns, ns + 10, ns + 20]).unwrap(),
        model_time: ns as f64 * 0.9,
        best: false,
        best_segment: false,
        settled: segment != bytes / 4,
    }
}

/// Rows of two algorithms, three sizes and three segment sizes.
fn rows() -> Vec<Trial> {
    let mut rows = Vec::new();
    for bytes in [1u64 << 16, 1 << 18, 1 << 20] {
        for (i, algorithm) in ["chain", "bi-greedy"].into_iter().enumerate() {
            for part in [2, 4, 8] {
                let ns = 1000 * bytes.isqrt() + bytes * part + i as u64 * 7777;
                let mut row = row(bytes, algorithm, bytes / part, ns);
                row.best_segment = part == 2;
                row.best = part == 2 && i == 0;
                rows.push(row);
            }
        }
    }
    rows
}

fn heading() -> Heading {
    Heading {
        title: "oneport tune reduce: 8 ranks, paced clock".into(),
        summary: vec![
            ("machine", "A & B <C>".into()),
            ("command", "oneport tune reduce".into()),
        ],
        warnings: vec!["8 ranks on 2 cores".into()],
    }
}

#[test]
fn the_page_of_tune_is_readable_and_needs_no_pointer() {
    let Some(mut browser) = Browser::start("the page of tune") else {
        return;
    };
    let path = folder().join("tune.html");
    std::fs::write(&path, page(&heading(), &rows())).unwrap();
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        audit(&mut browser, view, &path);
        browser.eval("document.querySelector('details').open = true");
        audit(&mut browser, &format!("{view}-rows"), &path);
    }
    let order = tab_order(&mut browser);
    for id in ["by-size", "by-segment", "by-model", "size"] {
        assert!(
            order.iter().any(|o| o == id),
            "{id} is not reached: {order:?}"
        );
    }
    browser.eval("document.getElementById('by-segment').focus()");
    browser.press("ArrowRight");
    let tip = browser.eval("document.querySelector('#by-segment .tip').innerText");
    let tip = tip.as_str().unwrap();
    for word in ["segment 128 KiB (8 segments)", "median", "model"] {
        assert!(tip.contains(word), "{tip}");
    }
    // The best is named, and a line stands where the model is at its best, for each algorithm.
    let text = browser.eval("document.getElementById('by-segment').textContent");
    assert!(text.as_str().unwrap().contains("best"), "{text}");
    let lines = "[...document.querySelectorAll('#by-segment .optimum')].map(l => l.getAttribute('d').split(' ')[0])";
    let lines = browser.eval(lines);
    let at = browser.eval("document.querySelector('#by-segment .halo').getAttribute('cx')");
    assert_eq!(lines.as_array().unwrap().len(), 2, "{lines}");
    assert!(
        !lines
            .to_string()
            .contains(&format!("\"M{}\"", at.as_str().unwrap())),
        "{lines} {at}"
    );
    // The header of the table of all rows stays while the table scrolls.
    let head = "(() => { const d = document.querySelector('details'); d.open = true; const box = d.querySelector('.scroll'); \
                box.style.maxHeight = '120px'; box.scrollTop = 200; const th = box.querySelector('th').getBoundingClientRect(); \
                return [box.scrollTop, th.top - box.getBoundingClientRect().top]; })()";
    let head = browser.eval(head);
    assert!(
        head[0].as_f64().unwrap() > 50.0 && head[1].as_f64().unwrap().abs() < 3.0,
        "{head}"
    );
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// What the terminal says of the best rows.
#[test]
fn the_best_rows_stand_beside_the_next_the_library_and_their_doubts() {
    let mut all = rows();
    // Sixteen times the data in half the time: something disturbed the first size.
    for row in all.iter_mut().filter(|row| row.bytes == 1 << 16) {
        row.wall = Summary::of(&[row.wall.median * 1000; 3]).unwrap();
    }
    all.push(Trial {
        model_time: f64::NAN,
        best_segment: true,
        ..row(1 << 20, "MPI_Reduce", 1 << 20, 10_000_000)
    });
    let html = page(&heading(), &all);
    let (_, best) = html.split_once("<table id=\"best\">").unwrap();
    let (best, _) = best.split_once("</table>").unwrap();
    assert!(
        best.contains("<th class=\"name\">next</th>") && best.contains("library / best"),
        "{best}"
    );
    let lines: Vec<&str> = best.lines().filter(|line| line.contains("<td")).collect();
    assert!(
        lines[0].contains("disturbed") && !lines[2].contains("disturbed"),
        "{best}"
    );
    assert!(
        lines.iter().all(|line| line.contains("bi-greedy x 1")),
        "{best}"
    );
    assert_eq!(lines[2].matches("<td>-</td>").count(), 0, "{best}");
    // Of all rows, those are marked that the notes speak of; no row has a 99th percentile.
    let (_, every) = html.split_once("<table id=\"all\">").unwrap();
    let (every, _) = every.split_once("</table>").unwrap();
    let marked = every.lines().filter(|line| line.contains("disturbed"));
    let marked: Vec<&str> = marked.collect();
    assert_eq!(marked.len(), 2, "{every}");
    let first = |line: &&str| line.contains("<td>64 KiB</td>") && line.contains("<td>32 KiB</td>");
    assert!(marked.iter().all(first), "{marked:?}");
    assert!(!every.contains("p99"), "{every}");
}

#[test]
fn many_algorithms_look_different_and_are_hidden_at_once() {
    let Some(mut browser) = Browser::start("tune's page with many algorithms") else {
        return;
    };
    let path = folder().join("tune-many.html");
    let names: Vec<String> = (0..17).map(|i| format!("algorithm-{i}")).collect();
    let sizes = [1u64 << 10, 1 << 12, 52_429];
    let all = names.iter().zip(1u64..).flat_map(|(name, i)| {
        sizes.map(|bytes| Trial {
            best_segment: true,
            ..row(bytes, name, bytes, 1000 * i + bytes)
        })
    });
    std::fs::write(&path, page(&heading(), &all.collect::<Vec<_>>())).unwrap();
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        audit(&mut browser, view, &path);
    }
    let looks =
        "new Set([...document.querySelectorAll('.legend label svg')].map(s => s.innerHTML)).size";
    assert_eq!(browser.eval(looks), 17);
    let intervals = "document.querySelectorAll('#by-size .interval').length";
    assert_eq!(browser.eval(intervals), 3 * 17);
    let segment = "document.querySelector('#all tbody tr:nth-child(3)').textContent";
    assert!(browser.eval(segment).as_str().unwrap().contains("51.2 KiB"));
    browser.eval("document.querySelectorAll('.legend button')[1].click()");
    let shown = browser.eval("document.getElementById('by-size').textContent");
    assert_eq!(shown, "Nothing is selected.");
    browser.eval("document.querySelectorAll('.legend button')[0].click()");
    assert_eq!(browser.eval(intervals), 3 * 17);
}

#[test]
fn narrow_ranges_have_ticks_and_single_points_no_plot() {
    let Some(mut browser) = Browser::start("the axes of tune's page") else {
        return;
    };
    let path = folder().join("tune-narrow.html");
    // Times between 4.00 and 4.03 microseconds.
    let narrow: Vec<Trial> = [(1, 4000), (2, 4010), (4, 4030)]
        .map(|(part, ns)| row(1 << 16, "chain", (1 << 16) / part, ns))
        .into();
    std::fs::write(&path, page(&heading(), &narrow)).unwrap();
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        audit(&mut browser, view, &path);
        let hidden = browser.eval("['by-size', 'by-segment', 'by-model'].map(id => document.getElementById(id).closest('figure').hidden)");
        assert_eq!(hidden, serde_json::json!([true, false, false]));
        let ticks = browser.eval("[...document.querySelectorAll('#by-segment text')].map(t => t.textContent).filter(t => t.endsWith('µs'))");
        let ticks = ticks.as_array().unwrap();
        let mut distinct = ticks.clone();
        distinct.dedup();
        assert!(
            ticks.len() >= 3 && distinct.len() == ticks.len(),
            "{ticks:?}"
        );
    }
}

#[test]
fn the_page_of_the_benchmark_answers_by_collective() {
    let Some(mut browser) = Browser::start("the page of the collectives benchmark") else {
        return;
    };
    let point =
        |collective, ranks: usize, bytes: usize, median_ns: u64, model_ns: f64| bench::Point {
            group: "grid",
            collective,
            algorithm: "chain".to_string(),
            ports: "bi",
            ranks,
            bytes,
            segments: 1,
            segment: bytes,
            repetitions: 100,
            min_ns: 1000,
            median_ns,
            p99_ns: 2 * median_ns,
            model_ns: Some(model_ns),
            line_ns: Some(model_ns),
            moved: collective == "scan",
            oversubscribed: ranks > 2,
            pinned: true,
        };
    // One repetition, which took as long as the median.
    let once = bench::Point {
        repetitions: 1,
        min_ns: 9000,
        ..point("allgather", 2, 1 << 10, 9000, 100.0)
    };
    let points = [
        once,
        point("reduce", 2, 1 << 10, 1100, 1000.0),
        point("reduce", 8, 1 << 10, 1900, 500.0),
        point("broadcast", 2, 64 << 10, 5000, 4000.0),
        // The cores moved while it was measured, so no model is the one of its state.
        point("scan", 2, 1 << 10, 1100, 100.0),
    ];
    let summary = bench::Summary {
        profile: None,
        states: vec!["half a ping-pong of 8 B took 110 ns or 430 ns".into()],
        points: &points,
        checked: &[],
    };
    let path = folder().join("bench.html");
    std::fs::write(&path, summary.page()).unwrap();
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        browser.eval("document.querySelectorAll('details').forEach(d => d.open = true)");
        audit(&mut browser, view, &path);
    }
    let table = browser.eval("[...document.querySelectorAll('#ratios tbody tr')].map(r => [...r.cells].map(c => c.textContent))");
    // Neither of these has a point that was measured undisturbed with a core for each rank.
    let row = |name, points, median, worst, at, oversubscribed, disturbed| {
        serde_json::json!([name, points, median, worst, at, oversubscribed, disturbed])
    };
    assert_eq!(table[0], row("allgather", "1", "-", "-", "", "-", "⚠ 1"));
    assert_eq!(table[1], row("broadcast", "1", "-", "-", "", "-", "⚠ 1"));
    let at = "reduce chain, 2 ranks, 1 KiB, segments of 1 KiB";
    assert_eq!(
        table[2],
        row("reduce", "2", "1.10", "1.10", at, "3.80", "none")
    );
    assert_eq!(table[3], row("scan", "1", "-", "-", "", "-", "none"));
    let states = "document.body.innerText.includes('took 110 ns or 430 ns')";
    assert_eq!(browser.eval(states), true);
    let hollow = "[...document.querySelectorAll('#by-ratio svg *')].filter(m => m.style.fill === 'var(--plot)').length";
    assert_eq!(browser.eval(hollow), 3);
    // More ranks than cores are folded away; a panel has time over size with the model.
    let panels = "[document.querySelector('#crowded #by-ratio-crowded svg') !== null, \
                  ...['reduce', 'allgather'].map(c => document.querySelectorAll(`#time-${c} [role=img]`).length)]";
    assert_eq!(browser.eval(panels), serde_json::json!([true, 1, 1]));
    let order = tab_order(&mut browser);
    for region in ["Ratios by collective", "by-ratio", "All points"] {
        assert!(order.iter().any(|o| o == region), "{region}: {order:?}");
    }
    browser.eval("document.getElementById('by-ratio').focus()");
    browser.press("ArrowRight");
    let tip = browser.eval("document.querySelector('#by-ratio .tip').innerText");
    let first = "reduce chain, 2 ranks, 1 KiB, segments of 1 KiB\nmeasured/model 1.10";
    assert_eq!(tip, first);
}

#[test]
fn the_page_of_a_comparison_opens_the_schedules_of_its_rows() {
    let Some(mut browser) = Browser::start("the page of compare") else {
        return;
    };
    let path = folder().join("compare.html");
    let make = |arguments: &str| {
        oneport(&format!(
            "compare broadcast --bytes 960 {arguments} -o {}",
            path.display()
        ))
        .assert()
        .success();
    };
    make("-p 6 --segments 4 --alpha 10 --beta 1");
    let links = "(async () => { const names = [...document.querySelectorAll('#all td.name')];
        while (names.some(name => !name.querySelector('a'))) await new Promise(done => setTimeout(done, 5));
        const link = name => names.find(cell => cell.textContent === name).querySelector('a').href;
        return [names.length, await (await fetch(link('chain'))).text()]; })()";
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        audit(&mut browser, view, &path);
    }
    let found = browser.eval(links);
    assert!(found[0].as_u64().unwrap() > 10, "{}", found[0]);
    let player = found[1].as_str().unwrap();
    let rows = "broadcast, root 0, 6 ranks, 960 B, bidirectional ports";
    assert!(player.contains("<h1>broadcast by chain</h1>") && player.contains(rows));
    // 8 messages of 240 bytes follow each other.
    assert!(player.contains("2000 time units"), "{player}");
    // A table that does not fit beside the chart has the whole row.
    make("-p 2,4,8,12,16,24,32");
    browser.load(&path, VIEWS[0].1, false);
    let cut = "(() => { const box = document.querySelector('.charts .scroll'); \
               return [box.scrollWidth - box.clientWidth, box.querySelectorAll('thead th').length]; })()";
    assert_eq!(browser.eval(cut), serde_json::json!([0, 8]));
    // Of many points or ranks there is none.
    for arguments in ["-p 4,6", "-p 65"] {
        make(arguments);
        browser.load(&path, VIEWS[0].1, false);
        // No tick stands at half a rank.
        let ticks =
            "[...document.querySelectorAll('#plot text')].map(t => +t.textContent).filter(n => n)";
        let whole = if arguments == "-p 65" {
            vec![]
        } else {
            vec![4, 6]
        };
        assert_eq!(browser.eval(ticks), serde_json::json!(whole), "{arguments}");
        let links = browser.eval(
            "Object.keys(JSON.parse(document.getElementById('data').textContent).players.own).length",
        );
        assert_eq!(links, 0, "{arguments}");
    }
}

#[test]
fn the_page_of_verdicts_opens_its_schedules() {
    let Some(mut browser) = Browser::start("the page of check") else {
        return;
    };
    let place = folder().join("verdicts");
    std::fs::create_dir_all(&place).unwrap();
    let run = |arguments: &str| {
        let mut command = oneport(arguments);
        command.current_dir(&place).output().unwrap().status.code()
    };
    // A name that has no room in a narrow window, and so many files that the command has none.
    let mut files: Vec<String> = (0..12)
        .map(|i| format!("{i}-{}.json", "long".repeat(12)))
        .collect();
    for file in &files {
        run(&format!("plan reduce -p 4 -a chain --bytes 6 -o {file}"));
    }
    let text = std::fs::read_to_string(place.join(&files[0])).unwrap();
    let at = text.find(r#"{"recv_combine"#).unwrap();
    let end = at + text[at..].find("}}").unwrap() + 2;
    let forgotten = format!("{}{}", &text[..at], text[end..].trim_start_matches(','));
    std::fs::write(place.join("forgotten.json"), forgotten).unwrap();
    std::fs::write(place.join("none.json"), "{").unwrap();
    files.extend(["forgotten.json".into(), "none.json".into()]);
    let path = place.join("corpus.html");
    let checked = run(&format!(
        "check --alpha 10 --beta 1 -o corpus.html --schedule {}",
        files.join(" ")
    ));
    assert_eq!(checked, Some(1));
    for (view, size, dark) in VIEWS {
        browser.load(&path, size, dark);
        audit(&mut browser, view, &path);
    }
    let linked = "(async () => { const cells = [...document.querySelectorAll('#verdicts td:first-child')];
        while (!document.querySelector('#verdicts a')) await new Promise(done => setTimeout(done, 5));
        const link = name => [...document.querySelectorAll('a')].filter(a => a.textContent === name);
        const [above, row] = link('forgotten.json');
        return [cells.filter(cell => !cell.querySelector('a')).map(cell => cell.textContent),
            document.querySelectorAll('tr.failed').length, document.querySelectorAll('p.wrong').length,
            document.querySelector('dd summary').innerText.length,
            await (await fetch(link(cells[0].textContent)[0].href)).text(), above.href !== row.href,
            await (await fetch(above.href)).text()]; })()";
    let found = browser.eval(linked);
    assert_eq!(found[0], serde_json::json!(["none.json"]));
    assert_eq!([&found[1], &found[2]], [2, 2]);
    assert!(found[3].as_u64().unwrap() < 120, "{}", found[3]);
    let right = found[4].as_str().unwrap();
    assert!(right.contains("<h1>reduce by chain</h1>") && right.contains("alpha 10, beta 1/byte"));
    assert!(found[6].as_str().unwrap().contains("nothing moves after"));
    // What is opened is a player as `draw` makes it.
    let player = place.join("opened.html");
    std::fs::write(&player, right).unwrap();
    browser.complaints.clear();
    browser.load(&player, VIEWS[0].1, false);
    audit(&mut browser, VIEWS[0].0, &player);
}
