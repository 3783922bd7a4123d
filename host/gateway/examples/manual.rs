//! Writes the manual into a folder, a page a command, in a language: what a package is made with, so that the program needs not
//! carry what makes it.

use std::{env, fs, io, path::Path};

use clap::Command;
use clap_mangen::Man;
use pmk_core::Language;

/// What stands above the parts of a page, and what does in Chinese.
const PARTS: [(&str, &str); 6] = [
    ("NAME", "名稱"),
    ("SYNOPSIS", "用法"),
    ("DESCRIPTION", "說明"),
    ("VERSION", "版本"),
    ("OPTIONS", "選項"),
    ("EXTRA", "其他"),
];

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or_else(|| io::Error::other("name a folder"))?;
    let language = arguments.next().map_or(Ok(Language::English), |tag| tag.parse()).map_err(io::Error::other)?;
    let mut command = pmk_host::cli::command(language);
    command.build();
    write(&command, Path::new(&folder), language)
}

fn write(command: &Command, folder: &Path, language: Language) -> io::Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write(command, folder, language)?;
    }
    let page = Man::new(command.clone());
    let mut text = vec![];
    page.render(&mut text)?;
    let mut text = String::from_utf8(text).map_err(io::Error::other)?;
    if language == Language::TraditionalChinese {
        for (english, chinese) in PARTS {
            text = text.replace(&format!(".SH {english}\n"), &format!(".SH {chinese}\n"));
        }
    }
    fs::write(folder.join(page.get_filename()), text)
}
