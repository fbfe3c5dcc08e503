//! `oneport completions`: completion scripts for shells, and the manual page.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::ask::{Form, options};

options! {
    /// Print a completion script for a shell, or the manual page.
    #[derive(Debug)]
    #[examples = "\
Examples:
  oneport completions bash > ~/.local/share/bash-completion/completions/oneport
  oneport completions zsh > ~/.zfunc/_oneport
  oneport completions man > ~/.local/share/man/man1/oneport.1"]
    pub(crate) struct CompletionsArgs {
        /// The shell, or `man` for the manual page of all commands
        form: Printed = PrintedName { is_placed: true },
    }
}

/// What is printed.
#[derive(Debug, Clone, Copy)]
enum Printed {
    Script(Shell),
    Manual,
}

/// A shell, or `man`.
#[derive(Debug)]
struct PrintedName;

impl Form for PrintedName {
    type Value = Printed;

    fn parse(text: &str) -> Result<Printed, String> {
        Ok(Shell::from_str(text, true).map_or(Printed::Manual, Printed::Script))
    }

    fn names() -> Vec<(&'static str, &'static str)> {
        ["bash", "elvish", "fish", "powershell", "zsh", "man"]
            .map(|name| (name, ""))
            .into()
    }
}

pub(crate) fn run(
    args: &CompletionsArgs,
    mut command: clap::Command,
    out: &mut dyn Write,
) -> Result<()> {
    match args.form {
        Printed::Script(shell) => {
            // Into memory: the generator does not return the error of a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "oneport", &mut script);
            out.write_all(&script)?;
        }
        Printed::Manual => {
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
        }
    }
    Ok(())
}
