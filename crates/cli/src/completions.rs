//! `oneport completions`: completion scripts for shells, and the manual page.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap_complete::Shell;
use clap_mangen::Man;

/// Print a completion script for a shell, or the manual page.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oneport completions bash > ~/.local/share/bash-completion/completions/oneport
  oneport completions zsh > ~/.zfunc/_oneport
  oneport completions man > ~/.local/share/man/man1/oneport.1")]
pub(crate) struct CompletionsArgs {
    /// The shell, or `man` for the manual page of all commands
    #[arg(value_parser = forms())]
    form: Form,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Script(Shell),
    Manual,
}

fn forms() -> impl TypedValueParser<Value = Form> {
    let shells = Shell::value_variants().iter();
    let names = shells.filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(names.chain([PossibleValue::new("man")])).map(|name| {
        match Shell::from_str(&name, true) {
            Ok(shell) => Form::Script(shell),
            Err(_) => Form::Manual,
        }
    })
}

pub(crate) fn run(
    args: &CompletionsArgs,
    mut command: clap::Command,
    out: &mut dyn Write,
) -> Result<()> {
    match args.form {
        Form::Script(shell) => {
            // Into memory: the generator does not return the error of a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "oneport", &mut script);
            out.write_all(&script)?;
        }
        Form::Manual => {
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
