//! Tests of the atlas: all times of all schedules, in the browser, against the simulator.

use oneport::simulate::Prepared;
use oneport::{CostModel, Kind};
use oneport_pictures::atlas::{PORTS, Plate};
use serde_json::{Value, json};

use super::schedule::compare;
use super::{Browser, VIEWS, audit, folder};
use crate::support::run::{failure, oneport};

/// Costs under which schedules are timed.
const COSTS: [(f64, f64); 3] = [(200.0, 1.0), (1000.0, 0.1), (0.3, 7.7)];

/// By schedule of a collective: its name, its ports and the instants for each of the costs.
const TIMES: &str = "(async (name, costs) => (await atlas.load(name)).schedules.map(own => [own.name, own.ports,
  costs.map(([alpha, beta]) => { Object.assign(atlas.costs, { alpha, beta }); return atlas.timed(own).times; })]))";

/// What the index says of all schedules for some costs: model times and lower bounds.
const INDEX: &str = "(costs => player.plates.map(plate => plate.rows.map(row => costs.map(([alpha, beta]) => {
  Object.assign(player.costs, { alpha, beta }); return [player.time(row), player.worth(row.bounds)]; }))))";

/// When transfers and computations start and end, in order.
fn instants(prepared: &Prepared, cost: &CostModel) -> Vec<f64> {
    let simulation = prepared.simulate(cost).unwrap();
    let nodes = 0..prepared.nodes().len();
    let mut all: Vec<f64> = nodes
        .flat_map(|node| [simulation.start(node), simulation.finish(node)])
        .chain([0.0])
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

#[test]
fn all_pages_of_the_atlas_have_the_times_of_the_simulator() {
    let site = folder().join("atlas");
    let _ = std::fs::remove_dir_all(&site);
    let make = format!("atlas -o {}", site.display());
    oneport(&make).assert().success();
    let files = ["", "data"].map(|part| std::fs::read_dir(site.join(part)).unwrap());
    let bytes = files
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().metadata().unwrap().len());
    assert!(bytes.sum::<u64>() < 10_000_000);
    let message = failure(&mut oneport(&make), 2);
    assert!(message.contains("is not empty"), "{message}");

    let Some(mut browser) = Browser::start("the atlas") else {
        return;
    };
    let at = |page: &str, view: &str, place: &str| site.join(format!("{page}?{view}#{place}"));
    for (view, size, dark) in VIEWS {
        browser.load(&at("index.html", view, "allreduce/uni/200/1"), size, dark);
        audit(&mut browser, view, &folder().join("atlas-index.html"));
        browser.load(
            &at("player.html", view, "reduce/8/bi/binomial/200/1"),
            size,
            dark,
        );
        browser.eval("player.goTo(2)");
        audit(&mut browser, view, &folder().join("atlas-player.html"));
    }

    let costs = json!(COSTS);
    browser.load(&at("index.html", "times", ""), VIEWS[0].1, false);
    let index = browser.eval(&format!("{INDEX}({costs})"));
    browser.load(
        &at("player.html", "times", "barrier/2/bi/dissemination"),
        VIEWS[0].1,
        false,
    );
    let mut plates = index.as_array().unwrap().iter();
    let mut schedules = 0;
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_targets()) {
        for ranks in 2..=16 {
            let plate = Plate::new(kind, ranks);
            let all = browser.eval(&format!("{TIMES}('{}-{ranks}', {costs})", kind.name()));
            assert_eq!(all.as_array().unwrap().len(), plate.entries.len());
            let of_index = plates.next().unwrap();
            for (i, entry) in plate.entries.iter().enumerate() {
                let (schedule, ports) = (&entry.schedule, entry.schedule.ports().name());
                let what = format!("{} {ranks} {ports} {}", kind.name(), entry.algorithm);
                assert_eq!(all[i][0], *entry.algorithm, "{what}");
                assert_eq!(all[i][1], ports, "{what}");
                let prepared = Prepared::new(schedule, false).unwrap();
                for (at, (alpha, beta)) in COSTS.into_iter().enumerate() {
                    let cost = CostModel::new(alpha, beta);
                    let expected = instants(&prepared, &cost);
                    // To the last bit.
                    let shown = all[i][2][at].as_array().unwrap().iter();
                    let shown: Vec<f64> = shown.map(|time| time.as_f64().unwrap()).collect();
                    assert_eq!(shown, expected, "{what}: {alpha} {beta}");
                    let of_index = &of_index[i][at];
                    let bound = schedule.lower_bound(&cost).largest;
                    for (shown, known) in [(0, *expected.last().unwrap()), (1, bound)] {
                        let shown = of_index[shown].as_f64().unwrap();
                        assert!(
                            (shown - known).abs() <= 1e-12 * known,
                            "{what}: {shown} {known}"
                        );
                    }
                }
                // The player itself, of some: it names all contributions of few ranks.
                if schedules % 67 == 0 && ranks <= 8 && kind.has_data() {
                    let place = format!(
                        "{}/{ranks}/{ports}/{}/0.3/7.7",
                        kind.name(),
                        entry.algorithm
                    );
                    browser.load(
                        &at("player.html", &what.replace(' ', "-"), &place),
                        VIEWS[0].1,
                        false,
                    );
                    let simulation = prepared.simulate(&CostModel::new(0.3, 7.7)).unwrap();
                    compare(&mut browser, schedule, &simulation, 4);
                }
                schedules += 1;
            }
        }
    }
    assert!(plates.next().is_none() && schedules > 3000, "{schedules}");
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn the_atlas_times_schedules_side_by_side_for_the_chosen_costs() {
    let site = folder().join("atlas-part");
    let _ = std::fs::remove_dir_all(&site);
    oneport(&format!("atlas bcast -p 5,6 -o {}", site.display()))
        .assert()
        .success();
    let Some(mut browser) = Browser::start("the player of the atlas") else {
        return;
    };
    let page = site.join("player.html#broadcast/6/bi/binomial/100/2");
    browser.load(&page, VIEWS[0].1, false);
    let facts = "[...document.querySelectorAll('.facts')].map(f => f.textContent)";
    // 3 messages of 1680 bytes, then 2 segments more than edges of a quarter each.
    let shown = browser.eval(facts);
    assert!(
        shown[0]
            .as_str()
            .unwrap()
            .starts_with("10380 time units model time"),
        "{shown}"
    );
    browser.eval("player.goTo(2)");
    let hash = "(async () => { const beside = document.getElementById('beside'); beside.value = 'chain';
        beside.onchange({ target: beside });
        while (!document.title.includes('chain')) await new Promise(done => setTimeout(done, 5));
        const kept = player.state.time, alpha = document.getElementById('alpha'), of = [];
        for (const value of ['', '0']) { alpha.value = value; alpha.onchange({ target: alpha }); of.push(alpha.value); }
        return [location.hash, kept, ...of]; })()";
    // The time stays, and an emptied alpha is what it was.
    let expected = json!([
        "#broadcast/6/bi/binomial,chain/0/2",
        2 * (100 + 2 * 1680),
        "100",
        "0"
    ]);
    assert_eq!(browser.eval(hash), expected);
    let shown = browser.eval(facts);
    let expected = [3 * 2 * 1680, (5 + 3) * 2 * 420].map(|time| format!("{time} time units"));
    for (shown, expected) in shown.as_array().unwrap().iter().zip(expected) {
        assert!(
            shown.as_str().unwrap().starts_with(&expected),
            "{shown} {expected}"
        );
    }
    let five =
        site.join("player.html?5#broadcast/6/bi/binomial,chain,linear,knomial,postal,foo/1/1");
    browser.load(&five, VIEWS[0].1, false);
    let dropped = browser.eval("document.getElementById('dropped').textContent");
    assert_eq!(dropped, "Not shown: postal, foo (a page shows four).");
    // What is not there is said.
    let none = "(async () => { const title = document.querySelector('h1'), before = title.textContent; location.hash = '#broadcast/7/bi/chain';
        while (title.textContent === before) await new Promise(done => setTimeout(done, 5));
        return title.textContent; })()";
    assert_eq!(
        browser.eval(none),
        "The address names no schedule of this atlas"
    );
    let missing = site.join("index.html#broadcast/bi");
    browser.load(&missing, VIEWS[0].1, false);
    let reasons = browser.eval("document.getElementById('missing').textContent");
    let reasons = reasons.as_str().unwrap();
    assert!(
        reasons.contains("hier (5 ranks), lane (5 ranks): needs nodes"),
        "{reasons}"
    );
    let link = browser.eval("document.querySelector('#all a').getAttribute('href')");
    assert_eq!(link, "player.html#broadcast/5/bi/binomial/200/1");
    // Rounded numbers have the full ones; the plot has powers of two.
    browser.load(
        &site.join("index.html?7#foo/bi/1/1.23457"),
        VIEWS[0].1,
        false,
    );
    let shown = "[document.getElementById('note').textContent.includes('no collective \"foo\"'),
        ...['textContent', 'title'].map(key => document.querySelector('#all a')[key])]";
    let least = 3.0 * (1.0 + 1.23457 * 1680.0);
    let full = format!("{}", (least * 1e4_f64).round() / 1e4);
    let [rounded, full] = [json!(format!("{least:.0}")), json!(full)];
    assert_eq!(browser.eval(shown), json!([true, rounded, full]));
    let off = "(() => { const ports = document.getElementById('ports'); ports.value = 'uni'; ports.onchange();
        return [...document.querySelectorAll('#legend input:disabled')].map(box => [box.parentElement.textContent, box.checked]); })()";
    let off = browser.eval(off);
    assert!(
        off.as_array()
            .unwrap()
            .contains(&json!(["bi-greedy", false])),
        "{off}"
    );
    let kinds: Value = browser.eval("document.getElementById('kind').length");
    assert_eq!((kinds, PORTS.len()), (json!(1), 2));
}

#[test]
fn folders_that_cannot_be_filled_are_refused() {
    let file = folder().join("atlas-file");
    std::fs::write(&file, "").unwrap();
    for (arguments, word) in [
        (format!("atlas -o {}", file.display()), "cannot write"),
        (format!("atlas -o {}/below", file.display()), "cannot write"),
        ("atlas -p 1..4 -o x".into(), "2 to 64 ranks, not 1"),
        ("atlas".into(), "--output"),
    ] {
        let message = failure(&mut oneport(&arguments), 2);
        assert!(message.contains(word), "{arguments}: {message}");
    }
    assert!(!std::path::Path::new("x").exists());
}
