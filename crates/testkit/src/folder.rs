//! Folders for the files of a test.

use std::fs;
use std::path::PathBuf;

/// A folder that is gone when this is.
pub struct Folder(pub PathBuf);

impl Folder {
    /// An empty one, which no other test of this process may call the same.
    ///
    /// # Panics
    /// If there is no folder for temporary files.
    pub fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("airloom-{name}-{}", std::process::id()));
        // Another process of the same number may have failed here.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        Folder(folder)
    }

    /// The path of a file in it, as text.
    ///
    /// # Panics
    /// If it is no text.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("names of folders are UTF-8 here").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
