//! Writes the manual into a folder, a page a command: what a package is made with, so that the program needs not carry
//! what makes it.

use std::{env, io, path::PathBuf};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from).ok_or_else(|| io::Error::other("name a folder"))?;
    clap_mangen::generate_to(pmk_host::cli::command(), folder)
}
