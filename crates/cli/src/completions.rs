//! `oneport completions`: completion scripts for shells, and the manual page.

use std::io::Write;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

pub(crate) const NAME: &str = "completions";

const EXAMPLES: &str = "\
Examples:
  oneport completions bash > ~/.local/share/bash-completion/completions/oneport
  oneport completions zsh > ~/.zfunc/_oneport
  oneport completions man > ~/.local/share/man/man1/oneport.1";

/// The parser of the command.
pub(crate) fn command() -> Command {
    let forms = ["bash", "elvish", "fish", "powershell", "zsh", "man"];
    let form = Arg::new("form").value_name("FORM").required(true);
    Command::new(NAME)
        .about("Print a completion script for a shell, or the manual page")
        .after_help(EXAMPLES)
        .hide(true)
        .arg(
            form.help("The shell, or `man` for the manual page of all commands")
                .value_parser(PossibleValuesParser::new(forms)),
        )
}

/// The shell; `None` for the manual page.
pub(crate) fn form(matches: &ArgMatches) -> Option<Shell> {
    let form = matches.get_one::<String>("form")?;
    Shell::from_str(form, true).ok()
}

/// What is asked for, of this parser of all commands.
pub(crate) fn completions(form: Option<Shell>, mut command: Command) -> Result<String> {
    // Into memory: the generator does not return the error of a closed pipe.
    let mut text = Vec::new();
    match form {
        Some(shell) => clap_complete::generate(shell, &mut command, "oneport", &mut text),
        None => manual(command, &mut text)?,
    }
    Ok(String::from_utf8(text)?)
}

fn manual(mut command: Command, out: &mut dyn Write) -> Result<()> {
    command = command.disable_help_subcommand(true);
    command.build();
    let commands = command.get_subcommands().filter(|c| !c.is_hide_set());
    let pages: Vec<Man> = commands.cloned().map(Man::new).collect();
    Man::new(command).render(out)?;
    for page in pages {
        page.render_name_section(out)?;
        page.render_synopsis_section(out)?;
        page.render_options_section(out)?;
        page.render_extra_section(out)?;
    }
    Ok(())
}
