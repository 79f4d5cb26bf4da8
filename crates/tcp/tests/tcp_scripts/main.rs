//! The scripts of this folder, a test each: `cargo test -p airloom-tcp --test tcp_scripts NAME`.

mod language;
mod runner;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use language::Script;
use libtest_mimic::{Arguments, Failed, Trial};

/// All scripts below a folder, in order.
fn scripts(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "script") {
            found.push(path);
        }
    }
    Ok(())
}

fn play(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let outcome = Script::parse(&text).and_then(|script| runner::play(&script));
    outcome.map_err(|why| Failed::from(format!("{}: {why}", path.display())))
}

/// A wrong script, and what must be said of it.
const WRONG: &[(&str, &str, &str)] = &[
    ("has no rule", "0 quiet", "1: the first line says which rule is shown"),
    ("has an unknown field", "# RFC 9293 3.1: x\n0 < A 1 akc 1", "2: `akc` is no field"),
    ("goes back in time", "# RFC 9293 3.1: x\n1 quiet\n0.5 quiet", "3: time does not go backwards"),
    ("has an unknown setting", "# RFC 9293 3.1: x\nset ms 5\n0 quiet", "settings: unknown field `ms`"),
    (
        "expects what does not leave",
        "# RFC 9293 3.1: x\nhandshake passive\n0 > A 1",
        "line 3: nothing leaves",
    ),
    (
        "expects another number",
        "# RFC 9293 3.1: x\nhandshake passive\n0 call write 5\n. > A 2+5 ack 1",
        "different: sequence number",
    ),
    (
        "does not expect what leaves",
        "# RFC 9293 3.1: x\nhandshake passive\n0 call write 5\n1 quiet",
        "line 4: before this nothing should leave",
    ),
    (
        "ends too early",
        "# RFC 9293 3.1: x\nhandshake passive\n0 call write 5",
        "after the last line there is",
    ),
    (
        "expects another moment",
        "# RFC 9293 3.1: x\nhandshake passive\n0 call write 5\n0 > A 1+5\n0.9 > A 1+5",
        "nothing leaves",
    ),
    (
        "expects another window",
        "# RFC 9293 3.1: x\nhandshake passive\n0 expect cwnd 1",
        "cwnd is 4000, expected 1",
    ),
];

fn wrong(text: &str, complaint: &str) -> Result<(), Failed> {
    match Script::parse(text).and_then(|script| runner::play(&script)) {
        Err(why) if why.contains(complaint) => Ok(()),
        other => Err(Failed::from(format!("expected `{complaint}`, got {other:?}"))),
    }
}

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp_scripts");
    let mut found = Vec::new();
    scripts(&folder, &mut found).expect("the folder of scripts can be read");
    let trial = |path: PathBuf| {
        let name = path.with_extension("");
        let name = name.strip_prefix(&folder).expect("a path below it").display().to_string();
        Trial::test(name, move || play(&path))
    };
    let mut trials: Vec<Trial> = found.into_iter().map(trial).collect();
    for (name, text, complaint) in WRONG {
        let name = format!("language/a script that {name} is refused");
        trials.push(Trial::test(name, || wrong(text, complaint)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
