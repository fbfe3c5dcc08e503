//! Tests of what pages say of waiting ranks, against the reasons of the simulator.

use oneport::simulate::explain::{Link, WaitReason};

use super::schedule::{CASES, cost, drawn};
use super::{Browser, VIEWS, folder};
use crate::support::run::oneport;

/// By transfer or computation of a rank: what the page says of it.
const STEPS: &str = "(rank => { player.choose(rank); return [...document.querySelectorAll('#steps li')].map(li => {
  player.choose(rank, +li.dataset.node); return document.querySelector('#doing .chosen').textContent; }); })";

/// Words of a reason; what a partner waits for stands behind it.
fn words(link: &Link, before: Option<&Link>, is_late: bool) -> String {
    let by = before.map(|before| format!("step {} (", before.step));
    let by = by.unwrap_or_default();
    match link.reason {
        WaitReason::Arrival if is_late => format!("rank {} arrives at", link.rank),
        WaitReason::Data => format!("needs the result of {by}"),
        WaitReason::Overwrites => format!("overwrites what {by}"),
        WaitReason::Port => format!("by {by}"),
        WaitReason::Computation => format!("computes alone, and {by}"),
        WaitReason::Partner if before.is_some_and(|before| before.start < link.start) => {
            format!("the message of rank {} is on its way", before.unwrap().rank)
        }
        WaitReason::Partner => format!("rank {} is ready no earlier", before.unwrap().rank),
        _ => String::new(),
    }
}

#[test]
fn pages_give_the_reasons_of_the_simulator() {
    let Some(mut browser) = Browser::start("the reasons of a page") else {
        return;
    };
    let mut told = 0;
    for (i, arguments) in CASES.into_iter().enumerate() {
        let (path, schedule) = drawn(&format!("reasons-{i}"), arguments);
        let cost = cost(arguments);
        let simulation = schedule.simulate(&cost).unwrap();
        browser.load(&path, VIEWS[0].1, false);
        for (rank, program) in schedule.programs().iter().enumerate() {
            let lines = browser.eval(&format!("{STEPS}({rank})"));
            let lines: Vec<&str> = lines
                .as_array()
                .unwrap()
                .iter()
                .map(|l| l.as_str().unwrap())
                .collect();
            for step in 0..program.len() {
                // Of two parts the last, as the chain has it.
                let named = format!("step {step}: ");
                let line = lines.iter().rfind(|line| line.starts_with(&named)).unwrap();
                let chain = simulation.explain(&schedule, Some((rank, Some(step))));
                if chain[0].start == 0.0 {
                    assert!(line.contains("starts at once"), "{arguments}: {line}");
                    continue;
                }
                let links = if chain[0].reason == WaitReason::Partner {
                    2
                } else {
                    1
                };
                for (at, link) in chain.iter().take(links).enumerate() {
                    let is_late = cost.arrival(link.rank) > 0.0;
                    let words = words(link, chain.get(at + 1), is_late);
                    assert!(line.contains(&words), "{arguments}: {words}: {line}");
                    told += 1;
                }
            }
        }
    }
    assert!(told > 300, "{told}");
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn a_step_without_a_partner_is_marked_and_no_arrow_crosses_a_rank() {
    let Some(mut browser) = Browser::start("the page of a step without a partner") else {
        return;
    };
    // Rank 3 waits for rank 1, which sends to rank 2 alone, and would send what it waits for.
    let wrong = r#"{ "ranks": 5, "ports": "bi", "collective": {"kind": "broadcast", "root": 0},
      "layout": [ {"len": 4, "input": [[0,4]], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]},
                  {"len": 4, "input": [], "output": [[0,4]]}, {"len": 4, "input": [], "output": [[0,4]]},
                  {"len": 4, "input": [], "output": [[0,4]]} ],
      "programs": [ [ {"send": {"to": 1, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 0, "spans": [[0,4]]}}, {"send": {"to": 2, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 1, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 1, "spans": [[0,4]]}}, {"send": {"to": 4, "spans": [[0,4]]}} ],
                    [ {"recv": {"from": 3, "spans": [[0,4]]}} ] ] }"#;
    let file = folder().join("alone.json");
    std::fs::write(&file, wrong).unwrap();
    let path = folder().join("alone.html");
    oneport(&format!(
        "draw --schedule {} -o {}",
        file.display(),
        path.display()
    ))
    .assert()
    .success();
    browser.load(&path, VIEWS[0].1, false);
    browser.press("End");
    for (rank, words) in [
        (
            3,
            "receive from 1 waits for ever: no step of rank 1 meets it",
        ),
        (
            3,
            "send to 4 waits for ever: it needs the result of step 0 (receive from 1)",
        ),
        (4, "receive from 3 waits for ever: rank 3 never gets ready"),
    ] {
        browser.eval(&format!("player.choose({rank})"));
        let doing = browser.eval("document.getElementById('doing').textContent");
        assert!(doing.as_str().unwrap().contains(words), "{words}: {doing}");
    }
    let causes = browser
        .eval("[...document.querySelectorAll('#chart .waits')].map(w => w.matches('.cause'))");
    assert_eq!(causes, serde_json::json!([true, false, false]));
    // The least distance of an arrow from the middle of a rank beside its ends.
    let distance = "Math.min(...[...document.querySelectorAll('#messages .waits')].flatMap(path => {
      const points = [...Array(101).keys()].map(i => path.getPointAtLength(path.getTotalLength() * i / 100));
      return [...document.querySelectorAll('.rank circle')].map(c => Math.min(...points.map(p => Math.hypot(p.x - c.cx.baseVal.value, p.y - c.cy.baseVal.value))));
    }))";
    assert!(browser.eval(distance).as_f64().unwrap() >= 17.0);
}
