//! `emulate SCENARIO.toml [COMMAND ...]`: a scenario in real time, without Python. Tables and a capture go into the current folder.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use airloom_drive::real_time::{self, Files};
    use airloom_drive::virtual_time::Until;
    use airloom_world::scenario::Scenario;

    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("usage: emulate SCENARIO.toml [COMMAND ...]")?;
    let command: Vec<String> = words.collect();
    let scenario = Scenario::parse(&file, &std::fs::read_to_string(&file)?)?;
    let command = (!command.is_empty()).then_some(command.as_slice());
    let files = Files { folder: ".".into(), metadata: Vec::new(), run_id: "example".to_owned() };
    let until = Until::of(&scenario);
    let done = real_time::emulate(&scenario, None, command, until, Some(&files), |_, _| {}, |_, _, _| true);
    let (results, report) = done.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1)
    });
    for (name, value) in results.summary.values {
        eprintln!("{name:<40} {value}");
    }
    eprintln!("{:?}, exit code {:?}", report.outcome, report.exit_code);
    std::process::exit(report.exit_code.unwrap_or(0));
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("emulation needs Linux");
}
