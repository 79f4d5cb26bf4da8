//! What tests in real time share.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use airloom_drive::real_time::{self, Files, Report};
use airloom_drive::run::Results;
use airloom_drive::virtual_time::Until;
pub use airloom_testkit::Folder;
use airloom_testkit::skip;
use airloom_world::scenario::Scenario;

/// One laboratory at a time: the tests look at all processes and descriptors.
static ALONE: Mutex<()> = Mutex::new(());

/// The right to run, or `None` if this machine cannot.
pub fn laboratory(test: &str, programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = programs.iter().find(|p| !is_installed(p)).map(|p| format!("`{p}` is not installed"));
    match real_time::capabilities().emulation().err().or(missing) {
        None => Some(guard),
        Some(why) => {
            skip(&format!("drive/{test}"), &why);
            None
        }
    }
}

/// Runs a scenario as it says, with `command` in its first real host if there is one, and files in `folder`.
#[allow(dead_code, reason = "not every test has a scenario")]
pub fn emulate(
    scenario: &Scenario,
    command: Option<&[String]>,
    folder: Option<&Folder>,
) -> (Results, Report) {
    let (metadata, run_id) = (Vec::new(), "0123456789".to_owned());
    let files = folder.map(|folder| Files { folder: folder.0.clone(), metadata, run_id });
    let until = Until::of(scenario);
    real_time::emulate(scenario, None, command, until, files.as_ref(), |_, _| {}, |_, _, _| true)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A site whose `/object` has `size` octets, and an nginx that needs nothing outside `folder`.
#[allow(dead_code, reason = "not every test has a server")]
pub fn nginx(folder: &Folder, size: usize) -> Vec<String> {
    fs::create_dir_all(folder.file("www")).unwrap();
    fs::write(folder.file("www/object"), vec![b'x'; size]).unwrap();
    serving(folder, "default_type application/octet-stream;", "80")
}

/// An nginx that serves `www` in `folder` at `listen`, and needs nothing outside it.
pub fn serving(folder: &Folder, more: &str, listen: &str) -> Vec<String> {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {};", folder.file(kind)))
        .concat();
    let config = format!(
        "daemon off; worker_processes 1; user root; pid {}; events {{}}
        http {{ access_log off; {more} {temporary} server {{ listen {listen}; root {}; }} }}",
        folder.file("pid"),
        folder.file("www"),
    );
    fs::write(folder.file("nginx.conf"), config).unwrap();
    ["nginx", "-e", "stderr", "-c", &folder.file("nginx.conf")].map(str::to_owned).to_vec()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
