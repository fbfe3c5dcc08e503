//! What the arguments ask of a bench that prints one table: benches without criterion answer
//! `--list` and filters as those with it do.

/// Whether the bench `name` is to run: not under `cargo test --benches`, not for `--list` (which
/// gets its line), and not when filters, words among the arguments, name others. Words without
/// letters are values of options.
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
