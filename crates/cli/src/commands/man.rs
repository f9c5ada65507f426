//! `proofmill man`

use std::fs::create_dir_all;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::Failure;
use crate::files::write_together;

pub(crate) fn run(folder: &Path) -> Result<(), Failure> {
    create_dir_all(folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    let mut program = Cli::command().disable_help_subcommand(true);
    // Gives each command its full name, such as `proofmill-engine-serve`.
    program.build();
    let mut pages = Vec::new();
    add_pages(&program, folder, &mut pages)?;
    let pages: Vec<_> = pages.iter().map(|(path, text)| (&**path, text)).collect();
    write_together(&pages)
}

/// Adds the page of a command, and those of all commands below it that help lists.
fn add_pages(
    command: &Command,
    folder: &Path,
    pages: &mut Vec<(PathBuf, Vec<u8>)>,
) -> Result<(), Failure> {
    let page = Man::new(command.clone())
        .source(concat!("proofmill ", env!("CARGO_PKG_VERSION")))
        .manual("Proofmill");
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((folder.join(page.get_filename()), text));
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| add_pages(command, folder, pages))
}
