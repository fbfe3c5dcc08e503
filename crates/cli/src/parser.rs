//! The parser of the command line, made of the options of the commands.

use std::ffi::{OsStr, OsString};

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser};
use clap::builder::{TypedValueParser, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use oneport::mpi::is_launched;
use oneport_app::ask::{Given, Item, Row, Times, Words};
use oneport_app::{
    Ask, ENTRIES, Entry, VERSION, edits, element_type_like, is_library, operator_like,
};

use crate::Asked;
use crate::completions;

/// What the whole is, in a line and in more.
const ABOUT: (&str, &str) = (
    "Plan, prove, time and run collective communication under the one-port model",
    "Plan, prove, time and run collective communication under the one-port model.

A collective (a broadcast, a reduction, ...) is performed by a schedule: for every rank a list of \
sends, receives and local steps. A port carries one transfer at a time. oneport plans such \
schedules, or reads yours, proves them right, times them exactly in a cost model, and runs them on \
real threads with real bytes.",
);

/// A documentation in lines: its first paragraph, and all of them if there are several.
fn help_of(doc: &str) -> (String, Option<String>) {
    let lines = doc.lines().map(str::trim).collect::<Vec<_>>();
    let paragraphs = lines.split(|line| line.is_empty());
    let paragraphs = paragraphs.filter(|lines| !lines.is_empty());
    let paragraphs: Vec<String> = paragraphs.map(|lines| lines.join(" ")).collect();
    let first = paragraphs.first().map_or("", String::as_str);
    let short = match first.strip_suffix('.') {
        Some(text) if !text.ends_with('.') => text.to_string(),
        _ => first.to_string(),
    };
    (
        short,
        (paragraphs.len() > 1).then(|| paragraphs.join("\n\n")),
    )
}

fn values_of(row: &Row) -> ValueParser {
    let row = *row;
    let names = (row.names)();
    if !names.is_empty() {
        let values = names.into_iter().map(|(name, doc)| match help_of(doc).0 {
            none if none.is_empty() => PossibleValue::new(name),
            help => PossibleValue::new(name).help(help),
        });
        return PossibleValuesParser::new(values).into();
    }
    match row.words {
        Words::Text => {
            let parser = StringValueParser::new();
            ValueParser::new(parser.try_map(move |text| row.ensure_takes(text.as_ref())))
        }
        Words::Files => ValueParser::path_buf(),
        Words::Mixed => ValueParser::new(
            OsStringValueParser::new().try_map(move |word| row.ensure_takes(&word)),
        ),
    }
}

fn argument(row: &Row) -> Arg {
    let (short_help, long_help) = help_of(row.doc);
    let mut arg = Arg::new(row.name).help(short_help);
    if let Some(help) = long_help {
        arg = arg.long_help(help);
    }
    if !row.is_placed {
        arg = arg.long(row.long());
        if let [first, others @ ..] = row.shorts {
            arg = arg.short(*first).short_aliases(others.iter().copied());
        }
    }
    arg = arg
        .aliases(row.hidden_aliases.iter().copied())
        .visible_aliases(row.aliases.iter().copied())
        .hide(row.is_hidden)
        .hide_short_help(row.only_in_long_help);
    if let Some(heading) = row.heading {
        arg = arg.help_heading(heading);
    }
    if row.is_switch {
        return arg.action(ArgAction::SetTrue);
    }
    arg = arg
        .value_name(row.value())
        .value_parser(values_of(row))
        .allow_hyphen_values(row.takes_dashes);
    if row.words == Words::Files {
        arg = arg.value_hint(ValueHint::AnyPath);
    }
    if let Some(default) = row.default {
        arg = arg.default_value(default);
    }
    if let Some(value) = row.alone {
        arg = arg
            .num_args(0..=1)
            .default_missing_value(value)
            .require_equals(row.behind_equals);
    }
    if row.is_list {
        arg = arg.value_delimiter(',');
    }
    match row.times {
        _ if row.takes_words || row.is_placed && row.takes_several() => {
            arg.action(ArgAction::Append).num_args(1..)
        }
        Times::AtMostOnce => arg.action(ArgAction::Set),
        Times::Once => arg.required(row.default.is_none()),
        Times::AnyNumber => arg.action(ArgAction::Append),
    }
}

/// The parser of a command, without the choices that its second word has.
fn command(entry: &Entry, name: &'static str) -> Command {
    let (about, long_about) = help_of(entry.doc);
    let mut command = Command::new(name).about(about);
    if let Some(about) = long_about {
        command = command.long_about(about);
    }
    if !entry.examples.is_empty() {
        command = command.after_help(entry.examples);
    }
    command.args((entry.rows)().iter().map(argument))
}

/// What the words of a command line give. A launcher of MPI gives where ranks run.
fn given(rows: &[Row], matches: &ArgMatches) -> Given {
    let given = |row: &&Row| matches.value_source(row.name) == Some(ValueSource::CommandLine);
    let words = |row: &Row| {
        let words = matches.get_raw(row.name)?;
        let items = words.map(|word| Item::Word(word.into()));
        Some((row.name, items.collect()))
    };
    let mut given: Given = rows.iter().filter(given).filter_map(words).collect();
    if is_launched() && rows.iter().any(|row| row.name == "engine") {
        let mpi = || vec![Item::Word("mpi".into())];
        given.entry("engine").or_insert_with(mpi);
    }
    given
}

/// Of the whole.
const EXAMPLES: &str = "\
The flow, with a reduction over 8 ranks:
  oneport list                                              what there is
  oneport plan reduce -p 8 -a chain --segments 4 -o r.json  plan a schedule, or write one by hand
  oneport check --schedule r.json                           prove it right
  oneport simulate --schedule r.json                        time it in the cost model
  oneport run --schedule r.json                             run it on threads, with real data
  oneport compare reduce -p 8 --bytes 1MiB                  compare all algorithms
  oneport draw --schedule r.json -o r.svg                   draw what every rank does when
  oneport tune reduce -p 2 --bytes 64KiB --budget 2s        measure which segments are best
  oneport export goal --schedule r.json -o r.goal           write it for another tool
  oneport steady --generate fig3 --run                      a series of broadcasts on uneven links
  oneport synthesize allgather -p 9 --ports uni             the fewest rounds, proved

A transfer of n bytes takes alpha + beta*n, combining n bytes takes gamma*n. Every command explains itself with \
--help and prints one JSON object with --json. Exit code: 0 success, 1 a check failed or data is wrong, 2 bad usage or \
unreadable input.";

/// The parser of all commands, in the order of their entries.
fn whole() -> Command {
    let mut whole = Command::new("oneport")
        .version(VERSION)
        .about(ABOUT.0)
        .long_about(ABOUT.1)
        .after_help(EXAMPLES)
        .max_term_width(100);
    for entry in ENTRIES {
        whole = match entry.name.split_once(' ') {
            None => whole.subcommand(command(entry, entry.name)),
            Some((first, second)) => whole.mut_subcommand(first, |parent| {
                let parent = parent.subcommand(command(entry, second));
                parent
                    .subcommand_required(true)
                    .arg_required_else_help(true)
            }),
        };
    }
    whole
        .subcommand(completions::command())
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Groups of options that `--help` shows and `-h` does not, so that it fits a screen. Nor does `-h`
/// explain more than the examples.
const LONG_HELP: [&str; 4] = ["Vector", "Segments", "Blocks of unequal size", "Machine"];

/// The option with the first clause of its help in `-h`, if all of it is longer than a line.
fn brief(option: Arg) -> Arg {
    const MAX_LINE: usize = 60;
    /// Less, such as "Over MPI: ...", says nothing.
    const MIN_CLAUSE: usize = 24;
    let help = option.get_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let (text, default) = help.split_at(help.rfind(" [default: ").unwrap_or(help.len()));
    let ends = [". ", "; ", ": "].iter().filter_map(|end| text.find(end));
    match ends.filter(|&end| end >= MIN_CLAUSE).min() {
        Some(end) if help.len() > MAX_LINE && !option.is_positional() => {
            let long = option
                .get_long_help()
                .map_or(help.clone(), ToString::to_string);
            let short = format!("{}{default}", &text[..end]);
            option.help(short).long_help(long)
        }
        _ => option,
    }
}

/// The parser of the command line. Values may begin like negative numbers: their parsers know
/// better what is wrong with them.
pub(crate) fn parser() -> Command {
    fn adapted(command: Command) -> Command {
        let is_long = |arg: &Arg| {
            arg.get_help_heading()
                .is_some_and(|h| LONG_HELP.contains(&h))
        };
        let mut command = command.mut_args(|arg| {
            if is_long(&arg) {
                arg.hide_short_help(true)
            } else {
                brief(arg)
            }
        });
        let after = command.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        if let Some((examples, _)) = after.split_once("\n\n") {
            let examples = examples.to_string();
            command = command.after_help(examples).after_long_help(after);
        }
        command
            .allow_negative_numbers(true)
            .mut_subcommands(adapted)
    }
    adapted(whole())
}

/// The command that the words are, its name not among them.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Asked, clap::Error> {
    let mut parser = parser();
    let words = with_negative_values(words);
    let name = OsString::from("oneport");
    let matches = parser.try_get_matches_from_mut([name].iter().chain(&words));
    let matches = matches.map_err(|error| with_similar_names(error, parent(&parser, &words)))?;
    let (mut name, mut found) = (String::new(), &matches);
    while let Some((word, inner)) = found.subcommand() {
        name = format!("{name} {word}").trim_start().to_string();
        found = inner;
    }
    if name == completions::NAME {
        return Ok(Asked::Completions(completions::form(found)));
    }
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| parser.error(ErrorKind::MissingSubcommand, "no command"))?;
    let ask = Ask::of(entry, given(&(entry.rows)(), found));
    ask.map(Asked::Command).map_err(|wrong| {
        let mut command = parent(&parser, &words).clone();
        command.error(ErrorKind::ArgumentConflict, wrong)
    })
}

/// `--alpha -3us` as `--alpha=-3us`: of what begins with a minus sign, clap takes only numbers for
/// values.
fn with_negative_values(words: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        let text = word.to_string_lossy();
        let is_negative = text.starts_with('-')
            && text[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && text.parse::<f64>().is_err();
        match joined.last_mut() {
            Some(option) if is_negative && takes_next(option) => {
                option.push("=");
                option.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Whether a word is the name of an option, whose value may be the next word.
fn takes_next(word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    word.len() > 2 && word.starts_with("--") && !word.contains('=')
}

/// The last of the commands that the words name, one below the other.
fn parent<'a>(parser: &'a Command, words: &[OsString]) -> &'a Command {
    let mut command = parser;
    for word in words {
        match command.find_subcommand(word) {
            Some(below) => command = below,
            None => break,
        }
    }
    command
}

/// Suggests only what is similar to what was typed: `--restart` for `--reps` would delete a sweep.
fn with_similar_names(mut error: clap::Error, parser: &Command) -> clap::Error {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        let names = parser.get_subcommands().map(Command::get_name);
        let similar = names.filter_map(|name| Some((edits(typed, name)?, name)));
        let nearest = similar.min().map(|(_, name)| name.to_owned());
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::Suggested);
        match nearest {
            Some(name) => {
                let name = ContextValue::String(name);
                error.insert(ContextKind::SuggestedSubcommand, name);
            }
            None => {
                let shown = parser.get_subcommands().filter(|c| !c.is_hide_set());
                let names: Vec<_> = shown.map(Command::get_name).collect();
                let tip = format!("the commands are {}", names.join(", "));
                let tip = ContextValue::StyledStrs(vec![tip.into()]);
                error.insert(ContextKind::Suggested, tip);
            }
        }
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue)
        && let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidValue)
    {
        let like = [element_type_like(typed), operator_like(typed)];
        let mut like = like.into_iter().flatten();
        let like = like.find(|like| names.iter().any(|valid| valid == like));
        let similar = names
            .iter()
            .filter_map(|name| Some((edits(typed, name)?, &**name)));
        let nearest = like.or_else(|| similar.min().map(|(_, name)| name));
        let nearest = nearest.map(|name| ContextValue::String(name.to_owned()));
        error.remove(ContextKind::SuggestedValue);
        if let Some(name) = nearest {
            error.insert(ContextKind::SuggestedValue, name);
        }
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
        && is_library(typed)
    {
        let tip = format!(
            "rules for MPI libraries come from measurements: oneport tune COLLECTIVE --export \
             {typed}=FILE"
        );
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && let Some(ContextValue::String(name)) = error.get(ContextKind::SuggestedArg)
        && edits(typed, name).is_none()
    {
        error.remove(ContextKind::SuggestedArg);
        // It names the suggestion, too.
        error.remove(ContextKind::Usage);
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && error.get(ContextKind::SuggestedArg).is_none()
    {
        let shown = parser.get_arguments().filter(|arg| !arg.is_hide_set());
        let names = shown.filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
        let begun: Vec<String> = names.filter(|name| name.starts_with(&**typed)).collect();
        if typed.len() > 2 && !begun.is_empty() {
            error.insert(ContextKind::SuggestedArg, ContextValue::Strings(begun));
        }
    }
    error
}
