//! DOT: every message is an edge.

use oneport::Request;
use oneport_formats::dot::{DotGraph, write};

use crate::grid;

#[test]
fn golden() {
    let schedule = Request::broadcast(3, 5).plan("linear").unwrap();
    let expected = "digraph broadcast {\n  0 [shape=doublecircle];\n  1;\n  2;\n  0 -> 1 [label=\"1 x 5\"];\n  \
                    0 -> 2 [label=\"1 x 5\"];\n}\n";
    assert_eq!(write(&schedule, DotGraph::Tree).unwrap().text, expected);
    let expected = "digraph broadcast {\n  edge [fontsize=10];\n  \
        { rank=same; round0 [shape=plaintext, label=\"start\"]; r0_0 [label=\"0\"]; }\n  \
        { rank=same; round1 [shape=plaintext, label=\"round 1\"]; r0_1 [label=\"0\"]; r2_1 [label=\"2\"]; }\n  \
        { rank=same; round2 [shape=plaintext, label=\"round 2\"]; r1_2 [label=\"1\"]; }\n  \
        round0 -> round1 -> round2 [style=invis];\n  \
        r0_0 -> r0_1 [style=dotted, arrowhead=none];\n  \
        r0_0 -> r2_1 [label=\"5\"];\n  r0_1 -> r1_2 [label=\"5\"];\n}\n";
    assert_eq!(write(&schedule, DotGraph::Rounds).unwrap().text, expected);
}

#[test]
fn every_message_is_an_edge() {
    for (name, schedule) in grid() {
        let sends = schedule
            .programs()
            .iter()
            .flatten()
            .filter(|s| s.is_send() && !s.is_empty());
        let text = write(&schedule, DotGraph::Rounds).unwrap().text;
        let tree = write(&schedule, DotGraph::Tree).unwrap().text;
        let edges = text
            .lines()
            .filter(|l| l.contains(" -> r") && l.contains("[label="));
        assert_eq!(edges.count(), sends.count(), "{name}");
        // A node is declared before an edge names it.
        let nodes: std::collections::HashSet<&str> = text.split_whitespace().collect();
        assert!(nodes.len() > 2 && tree.ends_with("}\n"), "{name}");
    }
}
