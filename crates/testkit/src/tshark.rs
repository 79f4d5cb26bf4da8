//! Captures as an independent dissector reads them: tshark, where it is installed.

use std::path::Path;
use std::process::{Command, Stdio};

/// Are these programs there? If not, `test` is skipped: its name begins with its crate's and a slash.
pub fn are_installed(programs: &[&str], test: &str) -> bool {
    let is_there = |program: &&&str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let Some(missing) = programs.iter().find(|program| !is_there(program)) else { return true };
    crate::skip(test, &format!("{missing} is not installed (tools/peers test)"));
    false
}

/// What tshark prints of a capture.
///
/// # Panics
/// If it complains.
pub fn tshark(file: &Path, options: &[&str]) -> String {
    let output =
        Command::new("tshark").arg("-r").arg(file).args(options).output().expect("tshark is installed");
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("tshark writes UTF-8")
}

/// One line of `fields` for each frame that is shown.
///
/// # Panics
/// If tshark complains.
pub fn fields(file: &Path, options: &[&str], fields: &[&str]) -> Vec<String> {
    let options = options.iter().copied().chain(["-T", "fields"]);
    let words: Vec<&str> = options.chain(fields.iter().flat_map(|field| ["-e", field])).collect();
    tshark(file, &words).lines().map(str::to_owned).collect()
}

/// One line of the fields `names`, with bars between, for each of some messages in UDP between these ports.
///
/// # Panics
/// If tshark complains, or there is no folder for temporary files.
pub fn dissect(
    name: &str,
    ports: [u16; 2],
    messages: &[Vec<u8>],
    options: &[&str],
    names: &[&str],
) -> Vec<String> {
    let path = std::env::temp_dir().join(format!("airloom-{name}-{}.pcap", std::process::id()));
    std::fs::write(&path, pcap(ports, messages)).expect("the folder for temporary files can be written");
    let lines = fields(&path, &[options, &["-E", "separator=|"]].concat(), names);
    let _ = std::fs::remove_file(&path);
    lines
}

/// A capture of raw IP with the messages in UDP, a millisecond apart.
fn pcap(ports: [u16; 2], messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (n, message) in (0u32..).zip(messages) {
        let udp = 8 + message.len() as u16;
        let len = u32::from(20 + udp);
        for word in [n / 1000, n % 1000 * 1000, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&[0x45, 0]);
        file.extend_from_slice(&(20 + udp).to_be_bytes());
        file.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        for word in [ports[0], ports[1], udp, 0] {
            file.extend_from_slice(&u16::to_be_bytes(word));
        }
        file.extend_from_slice(message);
    }
    file
}
