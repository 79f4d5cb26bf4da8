//! Files of a folder, by the paths of requests.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Octets that are read of a file at a time.
pub(super) const PIECE: usize = 65_536;

/// A file that is being sent.
pub(super) struct Sending {
    file: File,
    pub(super) left: u64,
    /// Octets that were read last.
    pub(super) piece: usize,
}

impl Sending {
    /// The next octets, so many at most; none at the end.
    ///
    /// # Errors
    /// As the system says, or if the file became shorter.
    pub(super) fn read(&mut self, most: usize) -> io::Result<Bytes> {
        let mut piece = vec![0; self.left.min(most as u64) as usize];
        self.file.read_exact(&mut piece)?;
        self.piece = piece.len();
        self.left -= piece.len() as u64;
        Ok(piece.into())
    }
}

/// The folder that is served.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// It is no folder.
    pub(super) fn new(path: &Path) -> io::Result<Folder> {
        let path = path.canonicalize()?;
        if path.is_dir() { Ok(Folder(path)) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// The file that a target means, and its media type; `None` if there is none that may be had.
    ///
    /// # Errors
    /// As the system says, if it is not known whether there is one, or one that is there cannot be had now.
    pub(super) fn open(&self, target: &[u8]) -> io::Result<Option<(Sending, &'static str)>> {
        let Some(parts) = parts(target) else { return Ok(None) };
        let mut path = self.0.clone();
        path.extend(parts);
        match self.found(&path) {
            Err(why) if is_none(&why) => Ok(None),
            found => found,
        }
    }

    fn found(&self, path: &Path) -> io::Result<Option<(Sending, &'static str)>> {
        // Where links lead counts, not what they are called.
        let mut path = path.canonicalize()?;
        if path.metadata()?.is_dir() {
            path = path.join("index.html").canonicalize()?;
        }
        if !path.starts_with(&self.0) || !path.metadata()?.is_file() {
            return Ok(None);
        }
        let media = media(&path);
        let file = File::open(path)?;
        let about = file.metadata()?;
        Ok(about.is_file().then(|| (Sending { file, left: about.len(), piece: 0 }, media)))
    }
}

/// Does this say that there is nothing of that name, or nothing for us?
fn is_none(why: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};
    // Links that lead round and round have no kind yet.
    matches!(why.kind(), NotFound | PermissionDenied | NotADirectory | InvalidFilename)
        || why.raw_os_error() == Some(libc::ELOOP)
}

/// The names that a path consists of, decoded; `None` if it leads out of its folder or is no path.
fn parts(target: &[u8]) -> Option<Vec<String>> {
    let path = target.split(|octet| matches!(octet, b'?' | b'#')).next()?;
    let path = path.strip_prefix(b"/")?;
    let mut parts = Vec::new();
    for part in path.split(|octet| *octet == b'/') {
        let part = String::from_utf8(decoded(part)?).ok()?;
        match part.as_str() {
            "" | "." => {}
            ".." => return None,
            part if part.contains(['/', '\\', '\0']) => return None,
            _ => parts.push(part),
        }
    }
    Some(parts)
}

/// With `%` and two digits for an octet (RFC 3986, 2.1).
fn decoded(part: &[u8]) -> Option<Vec<u8>> {
    let mut octets = part.iter().copied();
    let mut out = Vec::with_capacity(part.len());
    while let Some(octet) = octets.next() {
        if octet != b'%' {
            out.push(octet);
            continue;
        }
        let mut digit = || char::from(octets.next()?).to_digit(16);
        out.push((digit()? * 16 + digit()?) as u8);
    }
    Some(out)
}

fn media(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_are_none() {
        let of = |target: &str| parts(target.as_bytes()).map(|parts| parts.join("|"));
        assert_eq!(of("/a/b.html?x=../y").as_deref(), Some("a|b.html"));
        assert_eq!(of("/").as_deref(), Some(""));
        assert_eq!(of("//./a%20b/").as_deref(), Some("a b"));
        for target in [
            "",
            "a",
            "*",
            "/..",
            "/a/../b",
            "/%2e%2e/x",
            "/a%2f..%2fb",
            "/%00",
            "/%",
            "/%zz",
            "/%ff",
            "/a\\b",
        ] {
            assert_eq!(of(target), None, "{target}");
        }
    }

    #[test]
    fn links_that_lead_out_and_folders_are_not_served() {
        let folder = std::env::temp_dir().join(format!("airloom-h3-files-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("www/sub")).unwrap();
        std::fs::write(folder.join("secret"), "s").unwrap();
        std::fs::write(folder.join("www/sub/index.html"), "page").unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("www/link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("www/zero")).unwrap();
        std::os::unix::fs::symlink("sub/index.html", folder.join("www/in")).unwrap();
        std::os::unix::fs::symlink("round", folder.join("www/round")).unwrap();
        let www = Folder::new(&folder.join("www")).unwrap();
        let open = |target: &str| www.open(target.as_bytes()).unwrap();
        let read = |target: &str| open(target).map(|(mut file, _)| file.read(PIECE).unwrap());
        assert_eq!(read("/sub/").as_deref(), Some(&b"page"[..]));
        assert_eq!(read("/in").as_deref(), Some(&b"page"[..]));
        let long = format!("/{}", "a".repeat(5000));
        for target in ["/link", "/zero", "/", "/none", "/in/none", "/round", "/sub/../../secret", &long] {
            assert_eq!(read(target), None, "{target}");
        }
        std::fs::remove_dir_all(folder).unwrap();
        assert!(Folder::new(Path::new("/none")).is_err() && Folder::new(Path::new("/dev/null")).is_err());
    }
}
