//! Command-line handling for benches without criterion: they understand `--list` and filters like
//! those with criterion.

/// Whether the bench `name` is to run. It is not under `cargo test --benches`, nor for `--list`
/// (which prints its name), nor if filters among the arguments do not match it. Arguments without
/// letters are values of options, not filters.
pub(crate) fn selected(name: &str) -> bool {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if !args.iter().any(|a| a == "--bench") {
        return false;
    }
    if args.iter().any(|a| a == "--list") {
        println!("{name}: benchmark");
        return false;
    }
    let is_filter = |a: &&String| !a.starts_with('-') && a.contains(char::is_alphabetic);
    let mut filters = args.iter().filter(is_filter).peekable();
    filters.peek().is_none() || filters.any(|filter| name.contains(filter.as_str()))
}
