//! Trees of gathers and scatters as lists of children, of which a paper's figure is easily written.
//!
//! ```json
//! {"collective": "gather", "sizes": [10, 50, 200], "children": [[2], [0], []]}
//! ```
//!
//! `sizes` are the blocks in elements, by rank; `children` by rank those that it receives from, in
//! this order. The root is the rank that is nobody's child. A scatter sends in the opposite order.
//! `ports` are `"bi"` unless given. Reading only: what becomes of a tree is a schedule.

use oneport::Ports;
use oneport::error::{Error, Result};
use oneport::internal::gather::GatherTree;
use oneport::internal::json_object;
use oneport::schedule::Schedule;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeFile {
    collective: String,
    sizes: Vec<usize>,
    children: Vec<Vec<usize>>,
    #[serde(default)]
    ports: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

/// Whether the text has such a tree.
pub(super) fn is_tree(text: &str) -> bool {
    let mut behind = text.split("\"children\"").skip(1);
    text.trim_start().starts_with('{') && behind.any(|text| text.trim_start().starts_with(':'))
}

/// Reads a tree as the schedule along it.
///
/// ```
/// use oneport_formats::tree;
/// use oneport::CostModel;
/// let path = r#"{"collective": "gather", "sizes": [10, 50, 200], "children": [[2], [0], []]}"#;
/// let schedule = tree::read(path)?;
/// let time = schedule.simulate(&CostModel::new(5.0, 1.0))?.makespan();
/// assert_eq!(time, (5.0 + 200.0) + (5.0 + 210.0));
/// # Ok::<(), oneport::Error>(())
/// ```
pub fn read(text: &str) -> Result<Schedule> {
    let file: TreeFile = json_object("tree", "collective, sizes and children", text)?;
    let ports = file.ports.as_deref().unwrap_or("bi");
    let ports = Ports::named(ports)
        .ok_or_else(|| Error::malformed(format!("tree: unknown ports '{ports}'")))?;
    let tree = GatherTree::of_children(&file.children)?;
    let schedule = match &*file.collective {
        "gather" => tree.gather(&file.sizes, ports),
        "scatter" => tree.scatter(&file.sizes, ports),
        other => Err(Error::malformed(format!(
            "tree: {other} is not one of gather and scatter"
        ))),
    }?;
    match file.name {
        Some(name) => schedule.with_name(name),
        None => Ok(schedule),
    }
}
