//! A capture on disk: it has its name only once it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use airloom_base::Outbox;

use crate::pcapng::{About, Writer};

/// A pcapng file under a temporary name, renamed by [`CaptureFile::finish`] and removed if that never happens.
pub struct CaptureFile {
    writer: Option<Writer<BufWriter<File>>>,
    temporary: PathBuf,
    path: PathBuf,
}

impl CaptureFile {
    /// Begins a capture that will be `path`. Until it is finished its name ends in `.part`.
    pub fn create(path: impl Into<PathBuf>, about: &About) -> io::Result<Self> {
        let path = path.into();
        let mut temporary = path.clone().into_os_string();
        temporary.push(".part");
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary)?;
        // From here on the temporary file is removed whatever fails.
        let mut capture = CaptureFile { writer: None, temporary, path };
        capture.writer = Some(Writer::new(BufWriter::with_capacity(1 << 18, file), about)?);
        Ok(capture)
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the packets of `outbox`, which stays as it is.
    pub fn write(&mut self, outbox: &Outbox) -> io::Result<()> {
        self.writer.as_mut().expect("only finish takes the writer").write(outbox)
    }

    /// Writes the end of the file and gives it its name.
    pub fn finish(mut self) -> io::Result<()> {
        let writer = self.writer.take().expect("only finish takes the writer");
        writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        // After finish there is nothing under the temporary name; before, nobody can use what is there.
        drop(self.writer.take());
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use airloom_testkit::Folder;

    use super::*;

    #[test]
    fn a_capture_that_was_not_finished_leaves_nothing() {
        let folder = Folder::new("record-unfinished");
        let capture = CaptureFile::create(folder.0.join("trace.pcapng"), &About::default()).unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        drop(capture);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_capture_has_its_name() {
        let folder = Folder::new("record-finished");
        let path = folder.0.join("trace.pcapng");
        let mut capture = CaptureFile::create(&path, &About::default()).unwrap();
        capture.write(&Outbox::default()).unwrap();
        capture.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_and_not_a_panic() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let writer = Writer::new(BufWriter::with_capacity(16, full), &About::default());
        assert!(writer.is_err());
    }
}
