//! Drawings of trees.

use oneport::{Collective, Kind, Ports, Request, Schedule, Span, Step};
use oneport_pictures::{Caption, Tree, tree};

use super::svg::{self, assert_inside, extent, read};
use super::{assert_no_overlap, planned};

#[test]
fn trees_have_one_node_per_rank_without_overlap() {
    let mut trees = 0;
    for (what, schedule) in planned() {
        let Some(found) = Tree::of(&schedule).unwrap() else {
            continue;
        };
        trees += 1;
        let p = schedule.ranks();
        assert_eq!(found.size(found.root()), p, "{what}");
        let elements = read(&tree(&found, &Caption::new(what.clone())).unwrap());
        assert_inside(&elements);
        let of_class = |class: &'static str| {
            let groups = elements.iter().enumerate();
            groups
                .filter(move |(_, e)| e.class() == class)
                .map(|(i, _)| i)
        };
        assert_eq!(of_class("edge").count(), p - 1, "{what}");
        let nodes: Vec<_> = of_class("node")
            .map(|i| {
                let is_box = |e: &&svg::Element| e.parent == Some(i) && e.name == "rect";
                extent(elements.iter().find(is_box).expect("a box"))
            })
            .collect();
        assert_eq!(nodes.len(), p, "{what}");
        assert_no_overlap(&nodes, &what);
    }
    assert!(trees > 20, "{trees}");
}

/// A binomial scatter over 4 ranks with blocks of 1 to 4 elements. Each rank's buffer holds the
/// blocks of its subtree.
fn scatter() -> Schedule {
    let mut b = Schedule::builder(4, Ports::BI, Collective::Scatter { root: 0 });
    let blocks = [(0, 1), (1, 2), (3, 3), (6, 4)].map(Span::from);
    b.layout(0, 10, [Span::new(0, 10)], Some(blocks[0]));
    b.layout(1, 2, None, Some(Span::new(0, 2)));
    b.layout(2, 7, None, Some(Span::new(0, 3)));
    b.layout(3, 4, None, Some(Span::new(0, 4)));
    b.step(0, Step::send(2, Span::new(3, 7)));
    b.step(0, Step::send(1, blocks[1]));
    b.step(1, Step::recv(0, Span::new(0, 2)));
    b.step(2, Step::recv(0, Span::new(0, 7)));
    b.step(2, Step::send(3, Span::new(3, 4)));
    b.step(3, Step::recv(2, Span::new(0, 4)));
    b.build().unwrap()
}

#[test]
fn trees_report_parents_and_subtree_sizes() {
    let found = Tree::of(&scatter().with_element_bytes(8))
        .unwrap()
        .expect("a tree");
    assert!(!found.towards_root() && found.segment().is_none());
    assert_eq!(
        (0..4).map(|r| found.parent(r)).collect::<Vec<_>>(),
        [None, Some(0), Some(0), Some(2)]
    );
    assert_eq!(
        (0..4).map(|r| found.size(r)).collect::<Vec<_>>(),
        [4, 1, 2, 1]
    );
    let text = tree(&found, &Caption::new("scatter")).unwrap();
    assert!(text.contains(">56 B</text>") && text.contains("rank 0 to rank 2: 1 message, 56 B"));
    // The root sends to rank 2 first, so rank 2 is drawn on the left.
    let elements = read(&text);
    let x = |rank: &str| {
        let node = elements
            .iter()
            .find(|e| e.name == "text" && e.text == rank && e.number("font-size") == 13.0);
        node.expect("a node").number("x")
    };
    assert!(x("2") < x("1"));

    // The reversed scatter is a gather: its messages go towards the root.
    let gather = scatter().reversed().unwrap();
    let found = Tree::of(&gather.with_element_bytes(8))
        .unwrap()
        .expect("a tree");
    assert!(found.towards_root());
    assert_eq!(found.root(), 0);
}

#[test]
fn trees_show_blocks_and_name_ranks_outside() {
    let mut b = Schedule::builder(4, Ports::BI, Collective::Gather { root: 0 });
    let layout = [(0, 3), (3, 0), (3, 5), (8, 0)].map(Span::from);
    b.layout(0, 8, [layout[0]], Some(Span::new(0, 8)));
    for (r, block) in layout.iter().enumerate().skip(1) {
        b.layout(r, 5, [Span::new(0, block.len)], None);
    }
    // Rank 1 has an empty block, but passes on that of rank 2; rank 3 has nothing to do.
    b.step(2, Step::send(1, Span::new(0, 5)));
    b.step(1, Step::recv(2, Span::new(0, 5)));
    b.step(1, Step::send(0, Span::new(0, 5)));
    b.step(0, Step::recv(1, layout[2]));
    let schedule = b.build().unwrap();
    assert!(schedule.check().is_correct());
    let found = Tree::of(&schedule.with_element_bytes(4))
        .unwrap()
        .expect("a tree");
    let text = tree(&found, &Caption::new("gather")).unwrap();
    for shown in [
        "a block of 20 B",
        ">12 B</text>",
        ">0 B</text>",
        "stroke-dasharray",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert!(
        text.contains("no messages (their blocks are empty): rank 3."),
        "{text}"
    );
}

#[test]
fn only_trees_are_recognized_as_trees() {
    let plan = |kind, name: &str, p, q| {
        let request = Request::new(kind, p, 12).segment_count(q);
        request.plan(name).unwrap()
    };
    let butterfly = plan(Kind::Reduce, "butterfly", 8, 1);
    assert!(Tree::of(&butterfly).unwrap().is_none());
    // The segments take different routes: the result is the tree of the first one.
    let greedy = Tree::of(&plan(Kind::Reduce, "bi-greedy", 16, 4))
        .unwrap()
        .unwrap();
    assert_eq!(greedy.segment().unwrap()[..], [Span::new(0, 3)]);
    // A chain is a tree from either end: the collective says which end is the root.
    for kind in [Kind::Reduce, Kind::Broadcast] {
        let chain = Tree::of(&plan(kind, "chain", 5, 4)).unwrap().unwrap();
        assert_eq!(
            (chain.root(), chain.towards_root()),
            (0, kind == Kind::Reduce)
        );
    }
}
